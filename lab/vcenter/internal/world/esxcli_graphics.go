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

func init() {
	commands["graphics.host.get"] = command{run: (*Host).graphicsHostGet}
	commands["graphics.host.set"] = command{params: []string{"defaulttype", "sharedpassthruassignmentpolicy"}, run: (*Host).graphicsHostSet}
	commands["graphics.host.refresh"] = command{run: func(*Host, *simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) { return yes(), nil }}
	commands["graphics.device.list"] = command{run: (*Host).graphicsDeviceList}
}

func (h *Host) graphicsNow() (types.HostGraphicsConfig, []types.HostGraphicsInfo, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.graphics.config, h.graphicsInfo(), h.graphics.loaded
}

func (h *Host) graphicsHostGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	c, _, _ := h.graphicsNow()
	return rows("HostGet", record("DefaultGraphicsType", graphicsWords[c.HostDefaultGraphicsType],
		"SharedPassthruAssignmentPolicy", graphicsWords[c.SharedPassthruAssignmentPolicy])), nil
}

func (h *Host) graphicsHostSet(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	c, _, _ := h.graphicsNow()
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
	h.configureGraphics(ctx, c)
	return yes(), nil
}

func (h *Host) graphicsDeviceList(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	_, info, loaded := h.graphicsNow()
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
