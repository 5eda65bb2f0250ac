// Package options is the advanced options of hosts and the settings of the vCenter.
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

func text(key, description, value string) types.OptionDef {
	return definition(key, description, &types.StringOption{DefaultValue: value, OptionType: settable()})
}

func number(key, description string, least, most, value int64) types.OptionDef {
	return definition(key, description,
		&types.LongOption{Min: least, Max: most, DefaultValue: value, OptionType: settable()})
}

func flag(key, description string, value bool) types.OptionDef {
	return definition(key, description,
		&types.BoolOption{Supported: true, DefaultValue: value, OptionType: settable()})
}

func settable() types.OptionType { return types.OptionType{ValueIsReadonly: types.NewBool(false)} }

func definition(key, description string, kind types.BaseOptionType) types.OptionDef {
	return types.OptionDef{ElementDescription: types.ElementDescription{
		Description: types.Description{Label: key, Summary: description}, Key: key}, OptionType: kind}
}

// hostOptions are advanced options of an ESXi host, with types and ranges.
// VMware: public lists of advanced options of ESXi 8; Net.PVRDMAVmknic is a string, empty by default.
// Ours: a selection; all other keys are InvalidName.
var hostOptions = []types.OptionDef{
	text("Config.HostAgent.log.level", "Level of the host agent's log", "info"),
	flag("Config.HostAgent.plugins.solo.enableMob", "Managed object browser", false),
	number("Disk.MaxIOSize", "Largest I/O in KB passed to a device", 32, 32767, 32767),
	number("Mem.ShareForceSalting", "Page sharing salting", 0, 2, 2),
	number("Migrate.Enabled", "Enable hot migration", 0, 1, 1),
	number("NFS.MaxVolumes", "Largest number of mounted NFS volumes", 8, 256, 32),
	number("Net.GuestIPHack", "Learn guest addresses from ARP", 0, 1, 0),
	text("Net.PVRDMAVmknic", "Vmknic for PVRDMA", ""),
	number("Net.TcpipHeapMax", "Largest size of the TCP/IP heap in MB", 32, 2048, 1024),
	number("Net.TcpipHeapSize", "Initial size of the TCP/IP heap in MB", 0, 32, 32),
	number("Security.AccountLockFailures", "Failed logins before an account is locked", 0, 100, 5),
	number("Security.AccountUnlockTime", "Seconds after which a locked account is unlocked", 0, 2147483647, 900),
	text("Syslog.global.logHost", "Remote hosts to send logs to", ""),
	number("UserVars.ESXiShellInteractiveTimeOut", "Idle time of shell sessions in seconds", 0, 86400, 0),
	number("UserVars.ESXiShellTimeOut", "Time in seconds the shell stays enabled", 0, 86400, 0),
	number("UserVars.SuppressShellWarning", "Do not warn of an enabled shell", 0, 1, 0),
	number("VMkernel.Boot.hyperthreading", "Enable hyperthreading", 0, 1, 1),
}

// vcenterOptions are settings of a vCenter; any key below config. may be added.
// VMware: VMware documentation, vgpu.hotmigrate.enabled: a boolean, false by default, since vCenter 6.7 U1.
var vcenterOptions = []types.OptionDef{
	flag("vgpu.hotmigrate.enabled", "Enable vGPU hot migration", false),
	text("VirtualCenter.ManagedIP", "Address of this vCenter", ""),
	text("log.level", "Level of the log", "info"),
}

// InstallHost gives a host its advanced options, with the values of the description.
func InstallHost(ctx *simulator.Context, h *host.Host, cli *esxcli.Executer) {
	m := ctx.Map.Get(*h.Entity.ConfigManager.AdvancedOption).(*simulator.OptionManager)
	m.SupportedOption = hostOptions
	m.Setting = defaults(hostOptions, h.Spec.Options)
	h.Entity.Config.Option = m.Setting
	h.Entity.Config.OptionDef = hostOptions
	cli.Add(map[string]esxcli.Command{
		"system.settings.advanced.list": {Params: []string{"delta", "option", "tree"}, Run: advancedList{h}.run}})
}

// InstallVcenter gives the vCenter its options, with the values of the description.
func InstallVcenter(sim *vcsim.Sim) {
	m := sim.Registry.OptionManager()
	m.SupportedOption = vcenterOptions
	m.Setting = append(slices.Clone(m.Setting), defaults(vcenterOptions, sim.Description.VcenterOptions)...)
}

// defaults are the options' values: those wanted, else the default ones.
func defaults(defs []types.OptionDef, wanted map[string]any) []types.BaseOptionValue {
	var out []types.BaseOptionValue
	for _, d := range defs {
		out = append(out, &types.OptionValue{Key: d.Key, Value: initial(d.OptionType, wanted[d.Key])})
	}
	return out
}

func initial(kind types.BaseOptionType, wanted any) any {
	switch t := kind.(type) {
	case *types.LongOption:
		if n, ok := wanted.(int); ok {
			return int64(n)
		}
		return t.DefaultValue
	case *types.BoolOption:
		if b, ok := wanted.(bool); ok {
			return b
		}
		return t.DefaultValue
	}
	if wanted != nil {
		return fmt.Sprint(wanted)
	}
	return kind.(*types.StringOption).DefaultValue
}

// Methods answers UpdateOptions: vcsim accepts every key, type and value, and notifies no PropertyCollector.
type Methods struct {
	*simulator.OptionManager
	Host *host.Host // nil for the options of the vCenter
}

// UpdateOptions checks all values before it changes any: an unknown key is InvalidName, a wrong type or range
// InvalidArgument.
// VMware: vSphere API reference, OptionManager.UpdateOptions: InvalidName, InvalidArgument. vcsim accepts everything.
// Ours: that nothing is changed when one value is wrong (unproven).
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

// refuse is the fault of a value, nil when the value is right.
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
	case *types.BoolOption:
		_, ok := value.(bool)
		return ok
	case *types.StringOption:
		_, ok := value.(string)
		return ok
	}
	return false
}

// store replaces the list of values, so that answers under way keep theirs, and notifies PropertyCollectors.
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

// keyed are the changes for those who watch a single key.
func keyed(path string, values []types.BaseOptionValue) []types.PropertyChange {
	var out []types.PropertyChange
	for _, v := range values {
		f := mo.Field{Path: path, Key: v.GetOptionValue().Key}
		out = append(out, vcsim.Change(f.String(), v))
	}
	return out
}

// HotMigration is vgpu.hotmigrate.enabled of the vCenter.
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
