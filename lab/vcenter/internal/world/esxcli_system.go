package world

import (
	"fmt"
	"strings"
	"time"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
)

func (h *ESXi) addCommands(cli *executer) {
	cli.add(map[string]command{
		"system.version.get":         {run: h.version},
		"system.stats.uptime.get":    {run: h.uptime},
		"system.maintenanceMode.get": {run: h.maintenanceGet},
	})
}

// uptime is in microseconds.
func (h *ESXi) uptime(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *cliError) {
	return &esxcli.Response{Kind: "long", String: fmt.Sprint(time.Since(*h.runtime(ctx).BootTime).Microseconds())}, nil
}

func (h *ESXi) maintenanceGet(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *cliError) {
	state := "Disabled"
	if h.runtime(ctx).InMaintenanceMode {
		state = "Enabled"
	}
	return &esxcli.Response{Kind: "string", String: state}, nil
}

func (h *ESXi) version(*simulator.Context, esxcli.Values) (*esxcli.Response, *cliError) {
	d := h.sim.desc
	update := "0"
	if i := strings.LastIndex(d.Version, "."); i >= 0 {
		update = d.Version[i+1:]
	}
	return rows("VersionGet", record("Product", "VMware ESXi", "Version", d.Version, "Build", "Releasebuild-"+d.Build, "Update", update, "Patch", "0")), nil
}
