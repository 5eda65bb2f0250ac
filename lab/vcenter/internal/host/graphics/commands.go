package graphics

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
)

// graphicsWords are the API's graphics types and policies in the words of esxcli.
var graphicsWords = map[string]string{
	"shared": "Shared", "sharedDirect": "SharedPassthru", "direct": "Direct", "basic": "Basic",
	"performance": "Performance", "consolidation": "Consolidation",
}

// apiWord is the API's word for one of esxcli's, "" when there is none among the choices.
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

func (s *System) hostRefresh(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	return esxcli.Yes(), nil
}

func (s *System) now() (types.HostGraphicsConfig, []types.HostGraphicsInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.info(), s.loaded
}

func (s *System) hostGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	c, _, _ := s.now()
	return esxcli.Rows("HostGet", esxcli.Record("DefaultGraphicsType", graphicsWords[c.HostDefaultGraphicsType],
		"SharedPassthruAssignmentPolicy", graphicsWords[c.SharedPassthruAssignmentPolicy])), nil
}

func (s *System) hostSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	c, _, _ := s.now()
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
	return esxcli.Yes(), nil
}

func (s *System) deviceList(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	_, info, loaded := s.now()
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
