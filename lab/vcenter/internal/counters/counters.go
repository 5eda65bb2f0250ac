// Package counters simulates the performance counters.
//
// vcsim: the list of counters, the intervals, and synthetic samples of all counters except those of GPUs.
package counters

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

const (
	realtime       = 20 * time.Second
	realtimeLength = time.Hour
)

// gpuLevel returns the statistics level from which a vCenter keeps GPU counters for each device.
// VMware: 4 in the list of counters that govmomi recorded, 3 in that of a vCenter 9.0.1 (ManageIQ's cassettes).
// Ours: the change came with 9.0 (unproven).
func gpuLevel(sim *vcsim.Sim) int32 {
	if sim.Knows.Since("9.0.0.0") {
		return 3
	}
	return 4
}

// gpuCounters are the available GPU counters, by their numbers in vcsim's list of counters: gpu.utilization,
// gpu.mem.used, gpu.mem.usage and gpu.temperature, as averages.
// VMware: the list of counters that govmomi recorded (simulator/vpx/performance_manager.go).
var gpuCounters = map[int32]func(l datacentre.GPULoad, capacityMB int64, n int64) int64{
	559: func(l datacentre.GPULoad, _, n int64) int64 {
		return hundredths(l.Utilisation[at(n, len(l.Utilisation))])
	},
	563: func(l datacentre.GPULoad, _, _ int64) int64 { return l.MemoryMB << 10 },
	567: func(l datacentre.GPULoad, capacityMB, _ int64) int64 {
		return hundredths(100 * float64(l.MemoryMB) / float64(capacityMB))
	},
	570: func(l datacentre.GPULoad, _, _ int64) int64 { return l.Temperature },
}

func hundredths(percent float64) int64 { return int64(math.Round(100 * percent)) }

func at(n int64, length int) int { return int(n % int64(length)) }

// Methods is the PerformanceManager with the GPU counters of hosts.
type Methods struct {
	*simulator.PerformanceManager
	Hosts *esxi.Hosts
	Sim   *vcsim.Sim
}

// PerfMetricIntSeries has the name of a govmomi type, whose encoding omits samples of zero.
type PerfMetricIntSeries struct {
	types.PerfMetricSeries

	Value []int64 `xml:"value"`
}

// Install sets the statistics level of the historical intervals to the one of the description.
// VMware: vSphere API reference, PerfInterval.level.
func Install(sim *vcsim.Sim) {
	for _, o := range sim.Registry.AllReference("PerformanceManager") {
		m := o.(*simulator.PerformanceManager)
		m.HistoricalInterval = slices.Clone(m.HistoricalInterval)
		for i := range m.HistoricalInterval {
			m.HistoricalInterval[i].Key, m.HistoricalInterval[i].Level = int32(i+1), sim.Description.StatisticsLevel
		}
		m.PerfCounter = slices.Clone(m.PerfCounter)
		for i, c := range m.PerfCounter {
			if _, ok := gpuCounters[c.Key]; ok {
				m.PerfCounter[i].PerDeviceLevel = gpuLevel(sim)
			}
		}
	}
}

// keeps reports whether an interval has GPU counters: the hosts' 20-second interval, or a historical one with their
// level.
func (m *Methods) keeps(interval int32) bool {
	if interval == int32(realtime.Seconds()) {
		return true
	}
	return slices.ContainsFunc(m.HistoricalInterval, func(i types.PerfInterval) bool {
		return i.SamplingPeriod == interval && i.Enabled && i.Level >= gpuLevel(m.Sim)
	})
}

// QueryAvailablePerfMetric adds the GPU counters of a connected host, one instance for each measured GPU.
// Ours: the instance is the PCI address unless the description sets another name. The name on a vCenter is unknown.
func (m *Methods) QueryAvailablePerfMetric(ctx *simulator.Context, req *types.QueryAvailablePerfMetric) soap.HasFault {
	body := m.PerformanceManager.QueryAvailablePerfMetric(ctx, req).(*methods.QueryAvailablePerfMetricBody)
	h := m.Hosts.ByRef(req.Entity)
	anyInterval := req.IntervalId == 0
	if h == nil || !(anyInterval || m.keeps(req.IntervalId)) {
		return body
	}
	for _, g := range h.Graphics.Measured(ctx) {
		for _, counter := range slices.Sorted(maps.Keys(gpuCounters)) {
			body.Res.Returnval = append(body.Res.Returnval,
				types.PerfMetricId{CounterId: counter, Instance: g.Instance})
		}
	}
	return body
}

// QueryPerf answers queries for GPU counters of hosts: 20-second samples of the last hour, historical samples if the
// level is high enough. vcsim answers all other queries with synthetic data.
// VMware: vSphere API reference, PerformanceManager.QueryPerf: startTime is exclusive, endTime inclusive, maxSample
// applies only to real-time samples.
func (m *Methods) QueryPerf(ctx *simulator.Context, req *types.QueryPerf) soap.HasFault {
	body := &methods.QueryPerfBody{Res: new(types.QueryPerfResponse)}
	for _, q := range req.QuerySpec {
		gpu := 0
		for _, id := range q.MetricId {
			if _, ok := gpuCounters[id.CounterId]; ok {
				gpu++
			}
		}
		h := m.Hosts.ByRef(q.Entity)
		if gpu == 0 || h == nil {
			answer := m.PerformanceManager.QueryPerf(
				ctx, &types.QueryPerf{This: m.Self, QuerySpec: []types.PerfQuerySpec{q}}).(*methods.QueryPerfBody)
			if answer.Fault_ != nil {
				return answer
			}
			body.Res.Returnval = append(body.Res.Returnval, answer.Res.Returnval...)
			continue
		}
		if bad := m.refuseQuery(q, gpu); bad != "" {
			return &methods.QueryPerfBody{Fault_: vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: bad})}
		}
		if found := m.gpuSeries(ctx, h, q); found != nil {
			body.Res.Returnval = append(body.Res.Returnval, found)
		}
	}
	return body
}

// refuseQuery returns the invalid property of a query for GPU counters, or "" if all are valid.
// Ours: a query for both GPU counters and other counters is refused, because the series of vcsim have other times.
func (m *Methods) refuseQuery(q types.PerfQuerySpec, gpu int) string {
	known := q.IntervalId == int32(realtime.Seconds()) ||
		slices.ContainsFunc(m.HistoricalInterval, func(i types.PerfInterval) bool {
			return i.SamplingPeriod == q.IntervalId
		})
	switch {
	case !known:
		return "querySpec.interval"
	case gpu != len(q.MetricId):
		return "querySpec.metricId"
	case q.Format != "" && q.Format != string(types.PerfFormatNormal):
		return "querySpec.format"
	}
	return ""
}

// gpuSeries returns the series of a host, oldest sample first, or nil if the host has none.
func (m *Methods) gpuSeries(
	ctx *simulator.Context, h *esxi.Host, q types.PerfQuerySpec,
) types.BasePerfEntityMetricBase {
	gauges := h.Graphics.Measured(ctx)
	if len(gauges) == 0 || !m.keeps(q.IntervalId) {
		return nil
	}
	ticks := m.ticks(q)
	out := &types.PerfEntityMetric{PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: q.Entity}}
	for _, n := range ticks {
		out.SampleInfo = append(out.SampleInfo,
			types.PerfSampleInfo{Timestamp: time.Unix(n*int64(q.IntervalId), 0).UTC(), Interval: q.IntervalId})
	}
	for _, id := range q.MetricId {
		for _, g := range gauges {
			if id.Instance != "*" && id.Instance != g.Instance {
				continue
			}
			series := &PerfMetricIntSeries{PerfMetricSeries: types.PerfMetricSeries{
				Id: types.PerfMetricId{CounterId: id.CounterId, Instance: g.Instance}}}
			for _, n := range ticks {
				series.Value = append(series.Value, gpuCounters[id.CounterId](g.Load, g.CapacityMB, n))
			}
			out.Value = append(out.Value, series)
		}
	}
	if len(out.Value) == 0 || len(ticks) == 0 {
		return nil
	}
	return out
}

// ticks returns the numbers of the requested samples: after the start, up to the end, within the retention of
// samples.
func (m *Methods) ticks(q types.PerfQuerySpec) []int64 {
	now, length := m.Sim.Now(), realtimeLength
	for _, i := range m.HistoricalInterval {
		if i.SamplingPeriod == q.IntervalId {
			length = time.Duration(i.Length) * time.Second
		}
	}
	start, end := now.Add(-length), now
	if q.StartTime != nil && q.StartTime.After(start) {
		start = *q.StartTime
	}
	if q.EndTime != nil && q.EndTime.Before(end) {
		end = *q.EndTime
	}
	var out []int64
	for n := start.Unix()/int64(q.IntervalId) + 1; n <= end.Unix()/int64(q.IntervalId); n++ {
		out = append(out, n)
	}
	if most := int(q.MaxSample); most > 0 && len(out) > most && q.IntervalId == int32(realtime.Seconds()) {
		out = out[len(out)-most:]
	}
	return out
}
