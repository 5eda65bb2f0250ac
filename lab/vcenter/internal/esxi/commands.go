package esxi

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (h *Host) addCommands(cli *esxcli.Executer) {
	cli.Add(map[string]esxcli.Command{
		"system.version.get":         {Run: h.version},
		"system.stats.uptime.get":    {Run: h.uptimeGet},
		"system.maintenanceMode.get": {Run: h.maintenanceGet},
	})
}

// uptimeGet returns the time since the boot, in microseconds.
// VMware: govmomi, simulator/esx/command_info.go (recorded from ESXi 8.0.1): a number; that it counts microseconds is
// VMware's description of the command.
func (h *Host) uptimeGet(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	return &esxcli.Response{Kind: "long", String: fmt.Sprint(h.uptime(ctx).Microseconds())}, nil
}

// maintenanceGet returns Enabled or Disabled.
// Ours: the two words are general knowledge (unproven).
func (h *Host) maintenanceGet(ctx *simulator.Context, _ esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	state := "Disabled"
	if h.Runtime(ctx).InMaintenanceMode {
		state = "Enabled"
	}
	return &esxcli.Response{Kind: "string", String: state}, nil
}

// version returns product, version, build, update and patch.
// Ours: the names of the fields are general knowledge (unproven).
func (h *Host) version(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	d := h.Sim.Description
	update := "0"
	if i := strings.LastIndex(d.Version, "."); i >= 0 {
		update = d.Version[i+1:]
	}
	return esxcli.Rows("VersionGet", esxcli.Record("Product", "VMware ESXi", "Version", d.Version,
		"Build", "Releasebuild-"+d.Build, "Update", update, "Patch", "0")), nil
}
