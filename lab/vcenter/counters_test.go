package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

const measuredLab = `
statistics_level: 4
host_defaults:
  hardware: t4_cx5
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, gpu_load: {"0000:3b:00.0": {utilisation: [0, 90.5], memory_mb: 8192, temperature: 61}}}
      - {name: esx02.lab}
      - {name: esx03.lab, passthrough: [all], gpu_load: {"0000:3b:00.0": {utilisation: [50]}}}
vms:
  - {name: whole, host: esx03.lab, powered_on: true, passthrough: gpu, folder: research, pool: gold,
     attributes: {tenant: red}}
  - {name: twins, host: esx01.lab, powered_on: true, vgpus: [grid_t4-8c, grid_t4-4c], folder: research}
  - {name: pair, host: esx01.lab, powered_on: true, running_hours: 48, vgpus: [grid_t4-4c, grid_t4-4c], pool: gold}
`

const utilisation = int32(559)

func (r *running) series(
	host string, interval int32, since time.Duration, counters ...int32,
) (*types.PerfEntityMetric, error) {
	r.t.Helper()
	start := time.Now().Add(-since)
	q := types.PerfQuerySpec{Entity: r.host(host).Reference(), IntervalId: interval, StartTime: &start}
	for _, c := range counters {
		q.MetricId = append(q.MetricId, types.PerfMetricId{CounterId: c, Instance: "*"})
	}
	res, err := methods.QueryPerf(r.ctx, r.c.Client,
		&types.QueryPerf{This: *r.c.ServiceContent.PerfManager, QuerySpec: []types.PerfQuerySpec{q}})
	if err != nil || len(res.Returnval) == 0 {
		return nil, err
	}
	return res.Returnval[0].(*types.PerfEntityMetric), nil
}

func TestCountersTellTheLoadOfAGPU(t *testing.T) {
	r := launch(t, measuredLab)
	m, err := r.series("esx01.lab", 20, 10*time.Minute, utilisation, 563)
	r.must(err)
	if m == nil || len(m.Value) != 2 || len(m.SampleInfo) < 29 || len(m.SampleInfo) > 30 {
		t.Fatalf("not ten minutes of two counters: %+v", m)
	}
	if !m.SampleInfo[0].Timestamp.Before(m.SampleInfo[1].Timestamp) {
		t.Error("the samples are not oldest first")
	}
	busy, memory := m.Value[0].(*types.PerfMetricIntSeries), m.Value[1].(*types.PerfMetricIntSeries)
	if len(busy.Value) != len(m.SampleInfo) || busy.Id.Instance != "0000:3b:00.0" ||
		busy.Value[0]+busy.Value[1] != 9050 {
		t.Errorf("utilisation %v of %s", busy.Value[:2], busy.Id.Instance)
	}
	if memory.Value[0] != 8192<<10 {
		t.Errorf("memory %v", memory.Value[0])
	}
	day, err := r.series("esx01.lab", 300, 24*time.Hour, utilisation)
	r.must(err)
	if day == nil || len(day.SampleInfo) < 287 {
		t.Errorf("not a day of five minutes: %v", day)
	}
}

func TestCountersAreAbsentWhereNothingMeasures(t *testing.T) {
	r := launch(t, measuredLab)
	for _, host := range []string{"esx02.lab", "esx03.lab"} {
		if m, err := r.series(host, 20, time.Hour, utilisation); err != nil || m != nil {
			t.Errorf("%s answers %v, %v", host, m, err)
		}
	}
	r.control(http.MethodPatch, "/hosts/esx02.lab",
		map[string]any{"gpu_load": map[string]any{"0000:3b:00.0": map[string]any{"utilisation": []int{7}}}}, nil)
	if m, err := r.series("esx02.lab", 20, time.Hour, utilisation); err != nil || m == nil {
		t.Errorf("a load that was set does not show: %v, %v", m, err)
	}
	r.control(http.MethodPatch, "/hosts/esx02.lab", map[string]any{"gpu_load": map[string]any{"0000:3b:00.0": nil}},
		nil)
	if m, err := r.series("esx02.lab", 20, time.Hour, utilisation); err != nil || m != nil {
		t.Errorf("a load that was taken away shows: %v, %v", m, err)
	}
	if status, _ := r.controlRaw(http.MethodPatch, "/hosts/esx02.lab",
		map[string]any{"gpu_load": map[string]any{"0000:ff:00.0": nil}}); status != http.StatusBadRequest {
		t.Errorf("the load of no GPU is answered by %d", status)
	}
}

func TestCountersAreListedAndWrongQueriesRefused(t *testing.T) {
	r := launch(t, measuredLab)
	listed := func(host string) (found int) {
		res, err := methods.QueryAvailablePerfMetric(r.ctx, r.c.Client,
			&types.QueryAvailablePerfMetric{This: *r.c.ServiceContent.PerfManager, Entity: r.host(host).Reference(),
				IntervalId: 20})
		r.must(err)
		for _, id := range res.Returnval {
			if id.Instance == "0000:3b:00.0" {
				found++
			}
		}
		return found
	}
	if listed("esx01.lab") != 4 || listed("esx03.lab") != 0 {
		t.Errorf("listed are %d and %d counters", listed("esx01.lab"), listed("esx03.lab"))
	}
	known, err := methods.QueryPerfCounter(r.ctx, r.c.Client,
		&types.QueryPerfCounter{This: *r.c.ServiceContent.PerfManager, CounterId: []int32{utilisation}})
	r.must(err)
	if c := known.Returnval[0]; c.GroupInfo.GetElementDescription().Key != "gpu" ||
		c.NameInfo.GetElementDescription().Key != "utilization" || c.RollupType != "average" {
		t.Errorf("counter %d is %+v", utilisation, c)
	}
	if _, err := r.series("esx01.lab", 17, time.Hour, utilisation); err == nil {
		t.Error("an interval that does not exist is answered")
	}
	if _, err := r.series("esx01.lab", 20, time.Hour, utilisation, 2); err == nil {
		t.Error("GPU counters together with others are answered")
	}
}

func TestHistoryNeedsTheLevelOfTheCounters(t *testing.T) {
	r := launch(t, "")
	var manager mo.PerformanceManager
	r.must(r.c.RetrieveOne(r.ctx, *r.c.ServiceContent.PerfManager, []string{"historicalInterval"}, &manager))
	if level := manager.HistoricalInterval[0].Level; level != 1 {
		t.Errorf("the level of a new vCenter is %d", level)
	}
	r.control(http.MethodPatch, "/hosts/esx01.lab",
		map[string]any{"gpu_load": map[string]any{"0000:3b:00.0": map[string]any{"utilisation": []int{7}}}}, nil)
	if m, err := r.series("esx01.lab", 300, 24*time.Hour, utilisation); err != nil || m != nil {
		t.Errorf("a history at level 1 has GPU counters: %v, %v", m, err)
	}
}

func TestTheDescriptionPlacesMachines(t *testing.T) {
	r := launch(t, measuredLab)
	var report struct {
		GPUs []struct {
			Whole string `json:"passthrough_to"`
			VGPUs []struct{ VM, Profile string }
		}
	}
	r.control(http.MethodGet, "/hosts/esx03.lab", nil, &report)
	if len(report.GPUs) != 1 || report.GPUs[0].Whole != "whole" {
		t.Errorf("the GPU in DirectPath belongs to %+v", report.GPUs)
	}
	r.control(http.MethodGet, "/hosts/esx01.lab", nil, &report)
	var pair mo.VirtualMachine
	r.must(r.c.RetrieveOne(r.ctx, r.vm("pair").Reference(), []string{"runtime.bootTime"}, &pair))
	if began := pair.Runtime.BootTime; began == nil || time.Since(*began).Round(time.Hour) != 48*time.Hour {
		t.Errorf("it runs since %v", began)
	}
	if len(report.GPUs[0].VGPUs) != 2 || report.GPUs[0].VGPUs[0].VM != "pair" {
		t.Errorf("the shared GPU belongs to %+v", report.GPUs)
	}
}
