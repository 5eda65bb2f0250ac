package services

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// FirewallMethods answers the calls to a host's firewall; vcsim has one set of rulesets for all hosts.
type FirewallMethods struct {
	*simulator.HostFirewallSystem
	Services *System
}

// openFirewall opens the rulesets of the description.
// VMware: the rulesets are those of govmomi, simulator/esx/host_firewall_system.go (recorded from an ESXi).
func (s *System) openFirewall(ctx *simulator.Context) {
	s.rulesets = slices.Clone(esx.HostFirewallInfo.Ruleset)
	for i, r := range s.rulesets {
		if on, set := s.host.Spec.Rulesets[r.Key]; set {
			s.rulesets[i].Enabled = on
		}
	}
	s.showFirewall(ctx)
}

func (s *System) showFirewall(ctx *simulator.Context) {
	s.mu.Lock()
	info := types.HostFirewallInfo{DefaultPolicy: esx.HostFirewallInfo.DefaultPolicy, Ruleset: s.rulesets}
	s.mu.Unlock()
	s.host.Sim.Update(ctx, s.host.Sim.Registry.Get(*s.host.Entity.ConfigManager.FirewallSystem),
		vcsim.Change("firewallInfo", info))
	s.host.Push(ctx, vcsim.Change("config.firewall", info))
}

// changeRuleset changes one ruleset in a copy of the list, and returns false without one of this name.
func (s *System) changeRuleset(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) bool {
	s.mu.Lock()
	list := slices.Clone(s.rulesets)
	i := slices.IndexFunc(list, func(r types.HostFirewallRuleset) bool { return r.Key == key })
	if i >= 0 {
		f(&list[i])
		s.rulesets = list
	}
	s.mu.Unlock()
	if i >= 0 {
		s.showFirewall(ctx)
	}
	return i >= 0
}

func (m *FirewallMethods) change(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) *soap.Fault {
	if fault := m.Services.host.Unreachable(ctx); fault != nil {
		return fault
	}
	if !m.Services.changeRuleset(ctx, key, f) {
		return vcsim.SoapFault(new(types.NotFound))
	}
	return nil
}

// EnableRuleset opens the firewall of this host for a ruleset.
// VMware: pyVmomi 9.1, faults of EnableRuleset: NotFound. vcsim has one set of rulesets for all hosts.
func (m *FirewallMethods) EnableRuleset(ctx *simulator.Context, req *types.EnableRuleset) soap.HasFault {
	body := new(methods.EnableRulesetBody)
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) {
		r.Enabled = true
	}); body.Fault_ == nil {
		body.Res = new(types.EnableRulesetResponse)
	}
	return body
}

// DisableRuleset closes the firewall of this host for a ruleset.
// VMware: pyVmomi 9.1, faults of DisableRuleset: NotFound.
func (m *FirewallMethods) DisableRuleset(ctx *simulator.Context, req *types.DisableRuleset) soap.HasFault {
	body := new(methods.DisableRulesetBody)
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) {
		r.Enabled = false
	}); body.Fault_ == nil {
		body.Res = new(types.DisableRulesetResponse)
	}
	return body
}

// UpdateRuleset sets the addresses that may use a ruleset.
// VMware: vSphere API reference, HostFirewallSystem.UpdateRuleset.
func (m *FirewallMethods) UpdateRuleset(ctx *simulator.Context, req *types.UpdateRuleset) soap.HasFault {
	body := new(methods.UpdateRulesetBody)
	allowed := req.Spec.AllowedHosts
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) {
		r.AllowedHosts = &allowed
	}); body.Fault_ == nil {
		body.Res = new(types.UpdateRulesetResponse)
	}
	return body
}

// RefreshFirewall returns success; there is nothing to refresh.
// VMware: vSphere API reference, HostFirewallSystem.RefreshFirewall.
func (m *FirewallMethods) RefreshFirewall(*types.RefreshFirewall) soap.HasFault {
	return &methods.RefreshFirewallBody{Res: new(types.RefreshFirewallResponse)}
}

func (s *System) commands() map[string]esxcli.Command {
	return map[string]esxcli.Command{
		"network.firewall.ruleset.list": {Params: []string{"rulesetid"}, Run: s.rulesetList},
		"network.firewall.ruleset.set":  {Params: []string{"allowedall", "enabled", "rulesetid"}, Run: s.rulesetSet},
	}
}

// rulesetList returns the rulesets with their enabled state.
// VMware: govmomi, simulator/esx/type_info.go (recorded from ESXi 8.0.1): network firewall ruleset list.
func (s *System) rulesetList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	s.mu.Lock()
	list := s.rulesets
	s.mu.Unlock()
	out := esxcli.Rows("RulesetList")
	for _, r := range list {
		if id := a.Value("rulesetid"); id == "" || id == r.Key {
			out.Values = append(out.Values, esxcli.Record("Name", r.Key, "Enabled", esxcli.Bool(r.Enabled)))
		}
	}
	return out, nil
}

// rulesetSet opens or closes a ruleset, for all addresses or for a list.
// VMware: govmomi, simulator/esx/type_info.go (recorded from ESXi 8.0.1): network firewall ruleset set.
// Ours: the text of the refusal (unproven).
func (s *System) rulesetSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	found := s.changeRuleset(ctx, a.Value("rulesetid"), func(r *types.HostFirewallRuleset) {
		if v := a.Value("enabled"); v != "" {
			r.Enabled = v == "true"
		}
		if v := a.Value("allowedall"); v != "" {
			allowed := types.HostFirewallRulesetIpList{AllIp: v == "true"}
			r.AllowedHosts = &allowed
		}
	})
	if !found {
		return nil, esxcli.Errorf("Can not find rule set: %s", a.Value("rulesetid"))
	}
	return esxcli.Success(), nil
}
