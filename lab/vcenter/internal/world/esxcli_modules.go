package world

import (
	"strings"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
)

// commands are the esxcli commands we answer ourselves.
var commands = map[string]command{
	"system.module.parameters.list": {params: []string{"module"}, run: listModuleParameters},
	"system.module.parameters.set":  {params: []string{"append", "force", "module", "parameterstring"}, run: setModuleParameters},
	"system.module.list":            {params: []string{"enabled", "loaded"}, run: listModules},
	"system.version.get":            {run: systemVersion},
}

func listModuleParameters(h *Host, _ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	m, ok := h.moduleCopy(args.Value("module"))
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

func setModuleParameters(h *Host, _ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	name, options := args.Value("module"), args.Value("parameterstring")
	m, ok := h.moduleCopy(name)
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
	h.setModule(name, options)
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

func listModules(h *Host, _ *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
	out := rows("Module")
	for _, m := range h.moduleList() {
		if loaded := args.Value("loaded"); loaded != "" && (loaded == "true") != m.loaded {
			continue
		}
		out.Values = append(out.Values, record("Name", m.name, "IsLoaded", truth(m.loaded), "IsEnabled", "true"))
	}
	return out, nil
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func systemVersion(h *Host, _ *simulator.Context, _ esxcli.Values) (*esxcli.Response, *cliError) {
	d := h.world.desc
	update := "0"
	if i := strings.LastIndex(d.Version, "."); i >= 0 {
		update = d.Version[i+1:]
	}
	return rows("VersionGet", record("Product", "VMware ESXi", "Version", d.Version, "Build", "Releasebuild-"+d.Build, "Update", update, "Patch", "0")), nil
}
