// Package options simulates the advanced options of hosts and the settings of the vCenter.
//
// vcsim: the list of values.
package options

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

func text(key, value string) types.OptionDef {
	return definition(key, &types.StringOption{DefaultValue: value, OptionType: settable()})
}

func flag(key string, value bool) types.OptionDef {
	return definition(key, &types.BoolOption{Supported: true, DefaultValue: value, OptionType: settable()})
}

func settable() types.OptionType { return types.OptionType{ValueIsReadonly: types.NewBool(false)} }

func definition(key string, kind types.BaseOptionType) types.OptionDef {
	return types.OptionDef{ElementDescription: types.ElementDescription{
		Description: types.Description{Label: key, Summary: key}, Key: key}, OptionType: kind}
}

// vcenterOptions are settings of a vCenter; clients may add any key below config.
// VMware: VMware documentation, vgpu.hotmigrate.enabled: a boolean, false by default, since vCenter 6.7 U1.
var vcenterOptions = []types.OptionDef{
	flag("vgpu.hotmigrate.enabled", false),
	text("VirtualCenter.ManagedIP", ""),
	text("log.level", "info"),
}

// InstallHost adds the advanced options of a host, with the values of the description.
func InstallHost(ctx *simulator.Context, h *host.Host, cli *esxcli.Executer) {
	m := ctx.Map.Get(*h.Entity.ConfigManager.AdvancedOption).(*simulator.OptionManager)
	m.SupportedOption = hostOptions
	m.Setting = with(hostValues, h.Spec.Options)
	h.Entity.Config.Option = m.Setting
	h.Entity.Config.OptionDef = hostOptions
	cli.Add(map[string]esxcli.Command{
		"system.settings.advanced.list": {Params: []string{"delta", "option", "tree"}, Run: advancedList{h}.run}})
}

// InstallVcenter adds the options of the vCenter, with the values of the description.
func InstallVcenter(sim *vcsim.Sim) {
	m := sim.Registry.OptionManager()
	m.SupportedOption = vcenterOptions
	m.Setting = append(slices.Clone(m.Setting), with(defaults(vcenterOptions), sim.Description.VcenterOptions)...)
}

// defaults returns the options with their default values.
func defaults(defs []types.OptionDef) []types.BaseOptionValue {
	var out []types.BaseOptionValue
	for _, d := range defs {
		out = append(out, &types.OptionValue{Key: d.Key, Value: initial(d.OptionType)})
	}
	return out
}

func initial(kind types.BaseOptionType) any {
	switch t := kind.(type) {
	case *types.LongOption:
		return t.DefaultValue
	case *types.IntOption:
		return t.DefaultValue
	case *types.BoolOption:
		return t.DefaultValue
	}
	return kind.(*types.StringOption).DefaultValue
}

// with returns a list in which some options have the wanted values; hosts share unchanged values.
func with(list []types.BaseOptionValue, wanted map[string]any) []types.BaseOptionValue {
	if len(wanted) == 0 {
		return list
	}
	list = slices.Clone(list)
	for i, o := range list {
		if value, ok := wanted[o.GetOptionValue().Key]; ok {
			list[i] = &types.OptionValue{Key: o.GetOptionValue().Key, Value: like(o.GetOptionValue().Value, value)}
		}
	}
	return list
}

// like converts a value of the description to the type of an option's value, or returns the old value if it has
// another type.
func like(old, wanted any) any {
	number, isNumber := wanted.(int)
	_, isFlag := wanted.(bool)
	switch old.(type) {
	case int64:
		if isNumber {
			return int64(number)
		}
		return old
	case int32:
		if isNumber {
			return int32(number)
		}
		return old
	case bool:
		if isFlag {
			return wanted
		}
		return old
	}
	return fmt.Sprint(wanted)
}

// Methods answers UpdateOptions: vcsim accepts every key, type and value, and notifies no PropertyCollector.
type Methods struct {
	*simulator.OptionManager
	Host *host.Host // nil for the options of the vCenter
}

// UpdateOptions checks all values before it changes any: an unknown key is InvalidName, a wrong type or range
// InvalidArgument.
// VMware: vSphere API reference, OptionManager.UpdateOptions: InvalidName, InvalidArgument. vcsim accepts all values.
// Ours: that one invalid value prevents all changes (unproven).
func (o *Methods) UpdateOptions(ctx *simulator.Context, req *types.UpdateOptions) soap.HasFault {
	body := new(methods.UpdateOptionsBody)
	if o.Host != nil {
		if body.Fault_ = o.Host.Unreachable(ctx); body.Fault_ != nil {
			return body
		}
	}
	for _, c := range req.ChangedValue {
		if f := o.refuse(c.GetOptionValue()); f != nil {
			body.Fault_ = vcsim.SoapFault(f)
			return body
		}
	}
	o.store(ctx, req.ChangedValue)
	body.Res = new(types.UpdateOptionsResponse)
	return body
}

// refuse returns the fault of a value, or nil if the value is valid.
func (o *Methods) refuse(v *types.OptionValue) vcsim.Fault {
	for _, d := range o.SupportedOption {
		if d.Key == v.Key {
			if fits(d.OptionType, v.Value) {
				return nil
			}
			return &types.InvalidArgument{InvalidProperty: v.Key}
		}
	}
	if o.Host == nil && (o.has(v.Key) || strings.HasPrefix(v.Key, "config.")) {
		return nil
	}
	return &types.InvalidName{Name: v.Key}
}

func (o *Methods) has(key string) bool {
	return slices.ContainsFunc(o.Setting, func(v types.BaseOptionValue) bool { return v.GetOptionValue().Key == key })
}

func fits(kind types.BaseOptionType, value any) bool {
	switch t := kind.(type) {
	case *types.LongOption:
		n, ok := value.(int64)
		return ok && n >= t.Min && n <= t.Max
	case *types.IntOption:
		_, ok := value.(int32)
		return ok
	case *types.BoolOption:
		_, ok := value.(bool)
		return ok
	case *types.StringOption:
		_, ok := value.(string)
		return ok
	}
	return false
}

// store replaces the list of values, so that concurrent answers keep the old list, and notifies PropertyCollectors.
func (o *Methods) store(ctx *simulator.Context, values []types.BaseOptionValue) {
	list := slices.Clone(o.Setting)
	for _, v := range values {
		i := slices.IndexFunc(list, func(old types.BaseOptionValue) bool {
			return old.GetOptionValue().Key == v.GetOptionValue().Key
		})
		if i < 0 {
			list = append(list, v)
		} else {
			list[i] = v
		}
	}
	ctx.Update(o.OptionManager,
		append([]types.PropertyChange{vcsim.Change("setting", list)}, keyed("setting", values)...))
	if o.Host != nil {
		o.Host.Push(ctx, append([]types.PropertyChange{vcsim.Change("config.option", list)},
			keyed("config.option", values)...)...)
	}
}

// keyed returns the changes for clients that watch a single key.
func keyed(path string, values []types.BaseOptionValue) []types.PropertyChange {
	var out []types.PropertyChange
	for _, v := range values {
		f := mo.Field{Path: path, Key: v.GetOptionValue().Key}
		out = append(out, vcsim.Change(f.String(), v))
	}
	return out
}

// HotMigration returns the vCenter's vgpu.hotmigrate.enabled.
func HotMigration(ctx *simulator.Context) bool {
	m, on := ctx.Map.OptionManager(), false
	ctx.WithLock(m, func() {
		for _, o := range m.Setting {
			if v := o.GetOptionValue(); v.Key == "vgpu.hotmigrate.enabled" {
				on, _ = v.Value.(bool)
			}
		}
	})
	return on
}
