package world

import (
	"slices"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// firewallMethods answers the calls to a host's firewall; vcsim has one set of rulesets for all hosts.
type firewallMethods struct {
	*simulator.HostFirewallSystem
	services *Services
}

// openFirewall opens the rulesets that the description opens.
func (s *Services) openFirewall(ctx *simulator.Context) {
	s.rulesets = slices.Clone(esx.HostFirewallInfo.Ruleset)
	for i, r := range s.rulesets {
		if on, set := s.host.spec.Rulesets[r.Key]; set {
			s.rulesets[i].Enabled = on
		}
	}
	s.showFirewall(ctx)
}

func (s *Services) showFirewall(ctx *simulator.Context) {
	s.mu.Lock()
	info := types.HostFirewallInfo{DefaultPolicy: esx.HostFirewallInfo.DefaultPolicy, Ruleset: s.rulesets}
	s.mu.Unlock()
	s.host.sim.update(ctx, s.host.sim.reg.Get(*s.host.entity.ConfigManager.FirewallSystem), change("firewallInfo", info))
	s.host.push(ctx, change("config.firewall", info))
}

// changeRuleset changes one ruleset in a new list; false when there is none of the name.
func (s *Services) changeRuleset(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) bool {
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

func (m *firewallMethods) change(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) *soap.Fault {
	if fault := m.services.host.unreachable(ctx); fault != nil {
		return fault
	}
	if !m.services.changeRuleset(ctx, key, f) {
		return soapFault(new(types.NotFound))
	}
	return nil
}

// EnableRuleset opens the firewall for a ruleset on this host only.
func (m *firewallMethods) EnableRuleset(ctx *simulator.Context, req *types.EnableRuleset) soap.HasFault {
	body := new(methods.EnableRulesetBody)
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) { r.Enabled = true }); body.Fault_ == nil {
		body.Res = new(types.EnableRulesetResponse)
	}
	return body
}

// DisableRuleset closes it.
func (m *firewallMethods) DisableRuleset(ctx *simulator.Context, req *types.DisableRuleset) soap.HasFault {
	body := new(methods.DisableRulesetBody)
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) { r.Enabled = false }); body.Fault_ == nil {
		body.Res = new(types.DisableRulesetResponse)
	}
	return body
}

// UpdateRuleset sets who may use an open ruleset.
func (m *firewallMethods) UpdateRuleset(ctx *simulator.Context, req *types.UpdateRuleset) soap.HasFault {
	body := new(methods.UpdateRulesetBody)
	allowed := req.Spec.AllowedHosts
	if body.Fault_ = m.change(ctx, req.Id, func(r *types.HostFirewallRuleset) { r.AllowedHosts = &allowed }); body.Fault_ == nil {
		body.Res = new(types.UpdateRulesetResponse)
	}
	return body
}

// RefreshFirewall is answered; there is nothing to find out.
func (m *firewallMethods) RefreshFirewall(*types.RefreshFirewall) soap.HasFault {
	return &methods.RefreshFirewallBody{Res: new(types.RefreshFirewallResponse)}
}

func (s *Services) commands() map[string]command {
	return map[string]command{
		"network.firewall.ruleset.list": {params: []string{"rulesetid"}, run: s.rulesetList},
		"network.firewall.ruleset.set":  {params: []string{"allowedall", "enabled", "rulesetid"}, run: s.rulesetSet},
	}
}

func (s *Services) rulesetList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	s.mu.Lock()
	list := s.rulesets
	s.mu.Unlock()
	out := rows("RulesetList")
	for _, r := range list {
		if id := a.Value("rulesetid"); id == "" || id == r.Key {
			out.Values = append(out.Values, record("Name", r.Key, "Enabled", truth(r.Enabled)))
		}
	}
	return out, nil
}

func (s *Services) rulesetSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
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
		return nil, cliErrorf("Can not find rule set: %s", a.Value("rulesetid"))
	}
	return yes(), nil
}
