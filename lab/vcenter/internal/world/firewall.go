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
	host *Host
}

func (h *Host) installFirewall(ctx *simulator.Context) {
	h.rulesets = slices.Clone(esx.HostFirewallInfo.Ruleset)
	for i, r := range h.rulesets {
		if on, set := h.spec.Rulesets[r.Key]; set {
			h.rulesets[i].Enabled = on
		}
	}
	h.showFirewall(ctx)
}

func (h *Host) showFirewall(ctx *simulator.Context) {
	h.mu.Lock()
	info := types.HostFirewallInfo{DefaultPolicy: esx.HostFirewallInfo.DefaultPolicy, Ruleset: h.rulesets}
	h.mu.Unlock()
	h.world.update(ctx, h.world.reg.Get(*h.entity.ConfigManager.FirewallSystem), change("firewallInfo", info))
	h.push(ctx, change("config.firewall", info))
}

// changeRuleset changes one ruleset in a new list; false when there is none of the name.
func (h *Host) changeRuleset(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) bool {
	h.mu.Lock()
	list := slices.Clone(h.rulesets)
	i := slices.IndexFunc(list, func(r types.HostFirewallRuleset) bool { return r.Key == key })
	if i >= 0 {
		f(&list[i])
		h.rulesets = list
	}
	h.mu.Unlock()
	if i >= 0 {
		h.showFirewall(ctx)
	}
	return i >= 0
}

func (m *firewallMethods) change(ctx *simulator.Context, key string, f func(*types.HostFirewallRuleset)) *soap.Fault {
	if fault := m.host.unreachable(ctx); fault != nil {
		return fault
	}
	if !m.host.changeRuleset(ctx, key, f) {
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

func init() {
	commands["network.firewall.ruleset.list"] = command{params: []string{"rulesetid"}, run: (*Host).rulesetList}
	commands["network.firewall.ruleset.set"] = command{params: []string{"allowedall", "enabled", "rulesetid"}, run: (*Host).rulesetSet}
}

func (h *Host) rulesetList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	h.mu.Lock()
	list := h.rulesets
	h.mu.Unlock()
	out := rows("RulesetList")
	for _, r := range list {
		if id := a.Value("rulesetid"); id == "" || id == r.Key {
			out.Values = append(out.Values, record("Name", r.Key, "Enabled", truth(r.Enabled)))
		}
	}
	return out, nil
}

func (h *Host) rulesetSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	found := h.changeRuleset(ctx, a.Value("rulesetid"), func(r *types.HostFirewallRuleset) {
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
