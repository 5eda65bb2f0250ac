package lifecycle

import (
	"maps"
	"net/http"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// policy returns the effective remediation policy of a cluster.
// VMware: vSphere Automation SDK, policies.apply.Effective.EffectivePolicySpec; live_patch_action since 9.1.
// Ours: the values, and that the control interface replaces some of them.
func (s *Service) policy(out http.ResponseWriter, of vcsim.Ref) {
	policy := map[string]any{
		"failure_action":               map[string]any{"action": "RETRY", "retry_delay": 300, "retry_count": 3},
		"pre_remediation_power_action": "DO_NOT_CHANGE_VMS_POWER_STATE",
		"enable_quick_boot":            false,
		"disable_dpm":                  true,
		"disable_hac":                  false,
		"evacuate_offline_vms":         false,
		"enforce_hcl_validation":       false,
		"parallel_remediation_action":  map[string]any{"enabled": false},
	}
	maps.Copy(policy, s.clusters.State(of).ImagePolicy)
	restReply(out, policy)
}
