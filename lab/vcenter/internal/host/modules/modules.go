// Package modules simulates the VMkernel modules of a host and their options.
//
// vcsim: nothing.
package modules

import (
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Module is one VMkernel module: its configured options become the active ones at the next boot.
type Module struct {
	Name, Version, file string
	Configured, Active  string
	loaded              bool
	params              []parameter
}

type parameter struct{ name, kind, description string }

// nmlx5Core are the parameters of NVIDIA's ConnectX driver.
// VMware: NVIDIA ConnectX driver for ESXi user manual; some ranges are unknown.
var nmlx5Core = []parameter{
	{"DRSS", "uint", "Number of hw queues for Default Queue RSS. 0 - disabled, 2-16 power of two"},
	{"DYN_RSS", "int", "Enable dynamic RSS: 0 - off, 1 - on"},
	{"GEN_RSS", "int", "Number of NetQueue RSS engines"},
	{"RSS", "uint", "Number of hw queues for NetQ RSS. 0 - disabled, 2-16 power of two"},
	{"dcbx", "int", "DCBX: 0 - off, 1 - firmware runs it"},
	{"ecn", "int", "Explicit congestion notification: 0 - off, 1 - on"},
	{"enable_nmlx_debug", "int", "Debug prints: 0 - off, 1 - on"},
	{"max_vfs", "array of uint", "Number of virtual functions of each port, 0-128"},
	{"pfcrx", "uint", "Priority flow control on receive: bit mask of priorities, 0x00-0xff"},
	{"pfctx", "uint", "Priority flow control on transmit: bit mask of priorities, 0x00-0xff"},
	{"trust_state", "uint", "Port policy of trust: 1 - PCP, 2 - DSCP"},
}

// nmlx5RDMA are the parameters of the RDMA part of NVIDIA's ConnectX driver.
// VMware: NVIDIA ConnectX driver for ESXi user manual. That -1 switches a parameter off is general knowledge.
var nmlx5RDMA = []parameter{
	{"dscp_force", "int", "DSCP of RoCE traffic, 0-63, -1 - off"},
	{"pcp_force", "int", "PCP of RoCE traffic, 0-7, -1 - off"},
}

// System are the VMkernel modules of a host.
type System struct {
	host *host.Host

	mu      sync.Mutex // never held while a vcsim lock is taken
	modules map[string]*Module
}

// New loads the drivers of the host's devices with the options of the description.
func New(ctx *simulator.Context, h *host.Host, cli *esxcli.Executer) *System {
	s := &System{host: h, modules: map[string]*Module{}}
	add := func(name, version string, params []parameter) {
		o := h.Spec.ModuleOptions[name]
		s.modules[name] = &Module{Name: name, Version: version, file: "/usr/lib/vmware/vmkmod/" + name, Configured: o,
			Active: o, loaded: true, params: params}
	}
	add("vmw_ahci", "2.0.14-1vmw.803.0.0.24022510", nil)
	for _, nic := range h.Hardware.NICs {
		switch nic.Driver {
		case "nmlx5_core":
			add("nmlx5_core", "4.23.6.2", nmlx5Core)
			add("nmlx5_rdma", "4.23.6.2", nmlx5RDMA)
		default:
			add(nic.Driver, "2.6.5.0", []parameter{{"RSS", "array of int", "Number of receive queues"},
				{"max_vfs", "array of int", "Number of virtual functions"}})
		}
	}
	m := &kernelModuleSystem{modules: s}
	m.Self = h.ManagerRef("HostKernelModuleSystem", "kernelModuleSystem")
	h.Entity.ConfigManager.KernelModuleSystem = h.Manager(ctx, m)
	cli.Add(s.commands())
	return s
}

// configure replaces the option string of a module, and returns false if there is no such module.
func (s *System) configure(name, options string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.modules[name]
	if ok {
		m.Configured = options
	}
	return ok
}

// Module returns a copy of a module.
func (s *System) Module(name string) (Module, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.modules[name]
	if !ok {
		return Module{}, false
	}
	return *m, true
}

// List returns a copy of all modules, sorted by name.
func (s *System) List() []Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Module
	for _, m := range s.modules {
		out = append(out, *m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

type kernelModuleSystem struct {
	mo.HostKernelModuleSystem
	modules *System
}

// QueryModules returns the modules with the configured option strings.
// VMware: vSphere API reference, KernelModuleInfo.optionString.
func (k *kernelModuleSystem) QueryModules(*types.QueryModules) soap.HasFault {
	res := new(types.QueryModulesResponse)
	for i, m := range k.modules.List() {
		res.Returnval = append(res.Returnval, types.KernelModuleInfo{
			Id: int32(i + 1), Name: m.Name, Version: m.Version, Filename: m.file, OptionString: m.Configured,
			Loaded: m.loaded, Enabled: true, UseCount: 1,
		})
	}
	return &methods.QueryModulesBody{Res: res}
}

// QueryConfiguredModuleOptionString returns the option string for the next boot.
// VMware: vSphere API reference; pyVmomi 9.1, faults: NotFound.
func (k *kernelModuleSystem) QueryConfiguredModuleOptionString(
	req *types.QueryConfiguredModuleOptionString,
) soap.HasFault {
	body := new(methods.QueryConfiguredModuleOptionStringBody)
	m, ok := k.modules.Module(req.Name)
	if !ok {
		body.Fault_ = vcsim.SoapFault(new(types.NotFound))
		return body
	}
	body.Res = &types.QueryConfiguredModuleOptionStringResponse{Returnval: m.Configured}
	return body
}

// UpdateModuleOptionString replaces the option string; the change takes effect at the next boot.
// VMware: vSphere API reference; pyVmomi 9.1, faults: NotFound.
func (k *kernelModuleSystem) UpdateModuleOptionString(
	ctx *simulator.Context, req *types.UpdateModuleOptionString,
) soap.HasFault {
	body := new(methods.UpdateModuleOptionStringBody)
	if f := k.modules.host.Unreachable(ctx); f != nil {
		body.Fault_ = f
		return body
	}
	if !k.modules.configure(req.Name, req.Options) {
		body.Fault_ = vcsim.SoapFault(new(types.NotFound))
		return body
	}
	body.Res = new(types.UpdateModuleOptionStringResponse)
	return body
}

// Load adds a module that is loaded, such as a package's driver.
func (s *System) Load(name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modules[name] = &Module{Name: name, Version: version, file: "/usr/lib/vmware/vmkmod/" + name, loaded: true}
}

// Unload removes a module.
func (s *System) Unload(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.modules, name)
}

// Boot activates the configured options.
func (s *System) Boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.modules {
		m.Active = m.Configured
	}
}

// ActiveNumber returns the active value of a driver option, or 0 if it is unset or not a number.
func (m *Module) ActiveNumber(option string) uint64 {
	for _, o := range strings.Fields(m.Active) {
		if value, ok := strings.CutPrefix(o, option+"="); ok {
			n, err := strconv.ParseUint(value, 0, 8)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
