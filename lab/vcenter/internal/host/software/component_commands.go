package software

import (
	"cmp"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (s *System) componentCommands() map[string]esxcli.Command {
	apply := []string{"allowdowngrades", "component", "depot", "dryrun", "force", "maintenancemode",
		"nohardwarewarning", "noliveinstall", "nosigcheck", "proxy"}
	remove := []string{"component", "dryrun", "force", "maintenancemode", "noliveinstall"}
	return map[string]esxcli.Command{
		"software.component.apply":  {Params: apply, Run: s.componentApply, Deaf: deafAnswer(s.componentApply)},
		"software.component.list":   {Params: []string{"rebootingimage"}, Run: s.componentList},
		"software.component.get":    {Params: []string{"component", "rebootingimage"}, Run: s.componentList},
		"software.component.remove": {Params: remove, Run: s.componentRemove, Deaf: deafAnswer(s.componentRemove)},
	}
}

// componentID returns a component's name in the format of esxcli's results.
func componentID(v datacentre.VIB) string { return v.Component + "(" + v.Version + ")" }

func isComponent(v datacentre.VIB, name string) bool {
	return v.Component != "" && (name == v.Component || name == v.Component+":"+v.Version)
}

// componentApply installs the components of a depot, or the named ones; older versions are skipped.
// VMware: F. Denneman's posts on vSphere 8 and GPUs (2023): Components Installed, Removed, Skipped, Message, Reboot
// Required.
// Ours: the names of the parameters and the texts of refusals (unproven).
func (s *System) componentApply(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	offered, err := s.offered(esxcli.Values{"depot": a["depot"]})
	if err != nil {
		return nil, err
	}
	offered, err = components(offered, a["component"])
	if err != nil {
		return nil, err
	}
	t := options(a)
	for _, v := range offered {
		old, present := s.base()[v.Name]
		if present && newer(old.Version, v.Version) && a.Value("allowdowngrades") != "true" {
			t.skip = append(t.skip, v)
			continue
		}
		t.plan(s.base(), v, false)
	}
	done, err := s.commit(ctx, &t)
	if err != nil {
		return nil, err
	}
	return t.result("InstallationResult", "Components", done, componentID), nil
}

// components returns the packages of the named components, or of all components if none is named.
func components(list []datacentre.VIB, names []string) ([]datacentre.VIB, *esxcli.Error) {
	var out []datacentre.VIB
	found := map[string]bool{}
	for _, v := range list {
		wanted := len(names) == 0 && v.Component != ""
		for _, n := range names {
			if isComponent(v, n) {
				found[n], wanted = true, true
			}
		}
		if wanted {
			out = append(out, v)
		}
	}
	for _, n := range names {
		if !found[n] {
			return nil, &esxcli.Error{
				Lines: []string{"[NoMatchError]", "No component matching '" + n + "'.", "id = " + n, seeLog}}
		}
	}
	return out, nil
}

// componentList returns the installed components, or those of the next boot.
// VMware: F. Denneman's posts on vSphere 8 and GPUs (2023) show the command.
// Ours: the names of the fields over the API (unproven).
func (s *System) componentList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	list, err := components(s.listedImage(a).sorted(), a["component"])
	if err != nil {
		return nil, err
	}
	out := esxcli.Rows("ComponentSummary")
	seen := map[string]bool{}
	for _, v := range list {
		if seen[componentID(v)] {
			continue
		}
		seen[componentID(v)] = true
		out.Values = append(out.Values, esxcli.Record("AcceptanceLevel", v.AcceptanceLevel,
			"CreationDate", InstallDate, "DisplayName", cmp.Or(v.ComponentTitle, v.Component),
			"DisplayVersion", v.Version, "Name", v.Component, "Status", "", "Vendor", v.Vendor, "Version", v.Version))
	}
	return out, nil
}

// componentRemove removes components.
// Ours: modelled on software vib remove (unproven).
func (s *System) componentRemove(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	if len(a["component"]) == 0 {
		return nil, esxcli.Errorf("Error: Missing required parameter -n|--component")
	}
	t := options(a)
	var err *esxcli.Error
	if t.remove, err = components(s.base().sorted(), a["component"]); err != nil {
		return nil, err
	}
	done, err := s.commit(ctx, &t)
	if err != nil {
		return nil, err
	}
	return t.result("InstallationResult", "Components", done, componentID), nil
}
