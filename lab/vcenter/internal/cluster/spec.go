package cluster

import (
	"cmp"
	"sort"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Spec returns the specification that applies the DRS and HA settings of a description.
func Spec(drs *datacentre.DRS, ha *datacentre.HA, options map[string]string) *types.ClusterConfigSpecEx {
	spec := &types.ClusterConfigSpecEx{}
	if drs != nil {
		spec.DrsConfig = &types.ClusterDrsConfigInfo{Enabled: &drs.Enabled,
			DefaultVmBehavior: types.DrsBehavior(cmp.Or(drs.Behaviour, "fullyAutomated")), VmotionRate: 3}
		options = mergeText(options, drs.Options)
	}
	if len(options) > 0 {
		if spec.DrsConfig == nil {
			spec.DrsConfig = &types.ClusterDrsConfigInfo{}
		}
		spec.DrsConfig.Option = optionValues(options)
	}
	if ha != nil {
		spec.DasConfig = &types.ClusterDasConfigInfo{
			Enabled: &ha.Enabled, AdmissionControlEnabled: &ha.AdmissionControl, FailoverLevel: ha.FailoverLevel,
			AdmissionControlPolicy: &types.ClusterFailoverLevelAdmissionControlPolicy{FailoverLevel: ha.FailoverLevel},
		}
	}
	return spec
}

func mergeText(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func optionValues(options map[string]string) []types.BaseOptionValue {
	var keys []string
	for k := range options {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out []types.BaseOptionValue
	for _, k := range keys {
		out = append(out, &types.OptionValue{Key: k, Value: options[k]})
	}
	return out
}
