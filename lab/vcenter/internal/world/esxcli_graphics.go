package world

import (
	"fmt"
	"slices"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
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

func (s *Graphics) commands() map[string]command {
	return map[string]command{
		"graphics.host.get":     {run: s.hostGet},
		"graphics.host.set":     {params: []string{"defaulttype", "sharedpassthruassignmentpolicy"}, run: s.hostSet},
		"graphics.host.refresh": {run: s.hostRefresh},
		"graphics.device.list":  {run: s.deviceList},
	}
}

func (s *Graphics) hostRefresh(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	return yes(), nil
}

func (s *Graphics) now() (types.HostGraphicsConfig, []types.HostGraphicsInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.info(), s.loaded
}

func (s *Graphics) hostGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	c, _, _ := s.now()
	return rows("HostGet", record("DefaultGraphicsType", graphicsWords[c.HostDefaultGraphicsType],
		"SharedPassthruAssignmentPolicy", graphicsWords[c.SharedPassthruAssignmentPolicy])), nil
}

func (s *Graphics) hostSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	c, _, _ := s.now()
	if v := a.Value("defaulttype"); v != "" {
		if c.HostDefaultGraphicsType = apiWord(v, "shared", "sharedDirect"); c.HostDefaultGraphicsType == "" {
			return nil, cliErrorf("Invalid data constraint for parameter 'defaulttype'.")
		}
	}
	if v := a.Value("sharedpassthruassignmentpolicy"); v != "" {
		if c.SharedPassthruAssignmentPolicy = apiWord(v, "performance", "consolidation"); c.SharedPassthruAssignmentPolicy == "" {
			return nil, cliErrorf("Invalid data constraint for parameter 'sharedpassthruassignmentpolicy'.")
		}
	}
	s.configure(ctx, c)
	return yes(), nil
}

func (s *Graphics) deviceList(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	_, info, loaded := s.now()
	driver := "None"
	if loaded {
		driver = "nvidia"
	}
	out := rows("GraphicsDevice")
	for _, g := range info {
		out.Values = append(out.Values, record("Address", g.PciId, "DeviceName", g.DeviceName, "VendorName", g.VendorName, "ModuleName", driver,
			"GraphicsType", graphicsWords[g.GraphicsType], "MemorySizeinKB", fmt.Sprint(g.MemorySizeInKB), "NumberofVMs", fmt.Sprint(len(g.Vm))))
	}
	return out, nil
}
