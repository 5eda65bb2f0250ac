package graphics

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
)

// graphicsWords are the words of esxcli for graphics types and policies, by those of the API.
var graphicsWords = map[string]string{
	"shared": "Shared", "sharedDirect": "SharedPassthru", "direct": "Direct", "basic": "Basic",
	"performance": "Performance", "consolidation": "Consolidation",
}

// apiWord returns the API's word for a word of esxcli, or "" if no choice has it.
func apiWord(word string, choices ...string) string {
	i := slices.IndexFunc(choices, func(c string) bool { return graphicsWords[c] == word })
	if i < 0 {
		return ""
	}
	return choices[i]
}

func (s *System) commands() map[string]esxcli.Command {
	return map[string]esxcli.Command{
		"graphics.host.get":     {Run: s.hostGet},
		"graphics.host.set":     {Params: []string{"defaulttype", "sharedpassthruassignmentpolicy"}, Run: s.hostSet},
		"graphics.host.refresh": {Run: s.hostRefresh},
		"graphics.device.list":  {Run: s.deviceList},
	}
}

// hostRefresh returns success; there is nothing to refresh.
// Ours: assumed to correspond to RefreshGraphicsManager (unproven).
func (s *System) hostRefresh(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	return esxcli.Success(), nil
}

// current returns the configuration, the GPUs and whether NVIDIA's driver is loaded.
func (s *System) current() (types.HostGraphicsConfig, []types.HostGraphicsInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.info(), s.loaded
}

// hostGet returns the default graphics type and the assignment policy, in esxcli's words.
// VMware: VMware documentation, esxcli graphics host get: SharedPassthru is sharedDirect of the API.
func (s *System) hostGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	c, _, _ := s.current()
	return esxcli.Rows("HostGet", esxcli.Record("DefaultGraphicsType", graphicsWords[c.HostDefaultGraphicsType],
		"SharedPassthruAssignmentPolicy", graphicsWords[c.SharedPassthruAssignmentPolicy])), nil
}

// hostSet sets the default graphics type and the assignment policy.
// VMware: VMware documentation, esxcli graphics host set --default-type SharedPassthru.
// Ours: the name sharedpassthruassignmentpolicy and the text of the refusal (unproven).
func (s *System) hostSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	c, _, _ := s.current()
	if v := a.Value("defaulttype"); v != "" {
		if c.HostDefaultGraphicsType = apiWord(v, "shared", "sharedDirect"); c.HostDefaultGraphicsType == "" {
			return nil, esxcli.Errorf("Invalid data constraint for parameter 'defaulttype'.")
		}
	}
	if v := a.Value("sharedpassthruassignmentpolicy"); v != "" {
		if c.SharedPassthruAssignmentPolicy = apiWord(v, "performance",
			"consolidation"); c.SharedPassthruAssignmentPolicy == "" {
			return nil, esxcli.Errorf("Invalid data constraint for parameter 'sharedpassthruassignmentpolicy'.")
		}
	}
	s.configure(ctx, c)
	return esxcli.Success(), nil
}

// deviceList returns the GPUs with graphics type, driver and number of virtual machines.
// VMware: F. Denneman's posts on vSphere 8 and GPUs (2023) show the command.
// Ours: the names of its fields over the API (unproven).
func (s *System) deviceList(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	_, info, loaded := s.current()
	driver := "None"
	if loaded {
		driver = "nvidia"
	}
	out := esxcli.Rows("GraphicsDevice")
	for _, g := range info {
		out.Values = append(out.Values, esxcli.Record("Address", g.PciId, "DeviceName", g.DeviceName,
			"VendorName", g.VendorName, "ModuleName", driver,
			"GraphicsType", graphicsWords[g.GraphicsType], "MemorySizeinKB", fmt.Sprint(g.MemorySizeInKB),
			"NumberofVMs", fmt.Sprint(len(g.Vm))))
	}
	return out, nil
}
