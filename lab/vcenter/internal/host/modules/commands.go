package modules

import (
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (s *System) commands() map[string]esxcli.Command {
	return map[string]esxcli.Command{
		"system.module.parameters.list": {Params: []string{"module"}, Run: s.listParameters},
		"system.module.parameters.set": {Params: []string{"append", "force", "module", "parameterstring"},
			Run: s.setParameters},
		"system.module.list": {Params: []string{"enabled", "loaded"}, Run: s.listModules},
	}
}

// listParameters returns the parameters of a module with their configured values.
// VMware: public transcripts: rows Name, Type, Value, Description; an empty value is the default.
func (s *System) listParameters(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	m, ok := s.Module(args.Value("module"))
	if !ok {
		return nil, esxcli.Errorf("Unable to get module parameters: Module %s does not exist", args.Value("module"))
	}
	set := map[string]string{}
	for _, option := range strings.Fields(m.Configured) {
		name, value, _ := strings.Cut(option, "=")
		set[name] = value
	}
	out := esxcli.Rows("ModuleParameter")
	for _, p := range m.params {
		out.Values = append(out.Values,
			esxcli.Record("Name", p.name, "Type", p.kind, "Value", set[p.name], "Description", p.description))
	}
	return out, nil
}

// setParameters replaces the option string of a module, or with append appends to it.
// VMware: NVIDIA ConnectX driver for ESXi user manual; public transcripts: a second set loses the options of the
// first.
// Ours: the texts of the refusals (unproven).
func (s *System) setParameters(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	name, options := args.Value("module"), args.Value("parameterstring")
	m, ok := s.Module(name)
	if !ok {
		return nil, esxcli.Errorf("Unable to set module parameters: Module %s does not exist", name)
	}
	for _, option := range strings.Fields(options) {
		key, _, hasValue := strings.Cut(option, "=")
		if !hasValue || (!m.takes(key) && args.Value("force") != "true") {
			return nil, esxcli.Errorf("Invalid Module Parameter: %s", key)
		}
	}
	if args.Value("append") == "true" {
		options = strings.TrimSpace(m.Configured + " " + options)
	}
	s.configure(name, options)
	return esxcli.Success(), nil
}

func (m *Module) takes(option string) bool {
	for _, p := range m.params {
		if p.name == option {
			return true
		}
	}
	return false
}

// listModules returns the modules with their loaded and enabled states.
// Ours: the names of the fields are general knowledge (unproven).
func (s *System) listModules(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	out := esxcli.Rows("Module")
	for _, m := range s.List() {
		if loaded := args.Value("loaded"); loaded != "" && (loaded == "true") != m.loaded {
			continue
		}
		out.Values = append(out.Values,
			esxcli.Record("Name", m.Name, "IsLoaded", esxcli.Bool(m.loaded), "IsEnabled", "true"))
	}
	return out, nil
}
