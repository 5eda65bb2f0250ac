package world

import (
	"strings"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
)

func (s *Modules) commands() map[string]command {
	return map[string]command{
		"system.module.parameters.list": {params: []string{"module"}, run: s.listParameters},
		"system.module.parameters.set":  {params: []string{"append", "force", "module", "parameterstring"}, run: s.setParameters},
		"system.module.list":            {params: []string{"enabled", "loaded"}, run: s.listModules},
	}
}

func (s *Modules) listParameters(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	m, ok := s.module(args.Value("module"))
	if !ok {
		return nil, cliErrorf("Unable to get module parameters: Module %s does not exist", args.Value("module"))
	}
	set := map[string]string{}
	for _, option := range strings.Fields(m.configured) {
		name, value, _ := strings.Cut(option, "=")
		set[name] = value
	}
	out := rows("ModuleParameter")
	for _, p := range m.params {
		out.Values = append(out.Values, record("Name", p.name, "Type", p.kind, "Value", set[p.name], "Description", p.description))
	}
	return out, nil
}

func (s *Modules) setParameters(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	name, options := args.Value("module"), args.Value("parameterstring")
	m, ok := s.module(name)
	if !ok {
		return nil, cliErrorf("Unable to set module parameters: Module %s does not exist", name)
	}
	for _, option := range strings.Fields(options) {
		key, _, hasValue := strings.Cut(option, "=")
		if !hasValue || (!m.takes(key) && args.Value("force") != "true") {
			return nil, cliErrorf("Invalid Module Parameter: %s", key)
		}
	}
	if args.Value("append") == "true" {
		options = strings.TrimSpace(m.configured + " " + options)
	}
	s.configure(name, options)
	return yes(), nil
}

func (m *module) takes(option string) bool {
	for _, p := range m.params {
		if p.name == option {
			return true
		}
	}
	return false
}

func (s *Modules) listModules(_ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	out := rows("Module")
	for _, m := range s.list() {
		if loaded := args.Value("loaded"); loaded != "" && (loaded == "true") != m.loaded {
			continue
		}
		out.Values = append(out.Values, record("Name", m.name, "IsLoaded", truth(m.loaded), "IsEnabled", "true"))
	}
	return out, nil
}
