package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/front"
)

const (
	driverDepot = "/vmfs/volumes/shared/NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip"
	olderDepot  = "/vmfs/volumes/shared/NVD-AIE-800_550.54.16-1OEM.800.1.0.20613240_23471877.zip"
	daemonVIB   = "/vmfs/volumes/shared/nvdgpumgmtdaemon.vib"
	homemade    = "/vmfs/volumes/shared/homemade-tool.vib"
	driverName  = "NVD-AIE_ESXi_8.0.0_Driver"
)

// vibNames lists the packages of a host's image: the running one or, with rebooting, the one of the next boot.
func (r *running) vibNames(host string, rebooting bool) []string {
	r.t.Helper()
	args := []string{}
	if rebooting {
		args = []string{"rebootingimage", "true"}
	}
	rows, fault := r.esxcli(host, "software vib list", args...)
	if fault != "" {
		r.t.Fatal(fault)
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.get("Name"))
	}
	return names
}

func (r *running) enterMaintenance(host string) {
	r.t.Helper()
	r.finish(r.host(host).EnterMaintenanceMode(r.ctx, 0, false, nil))
}

// restart reboots a host in maintenance mode.
func (r *running) restart(host string) {
	r.t.Helper()
	h := r.host(host)
	r.control("PATCH", "/hosts/"+host, map[string]any{"reboot_seconds": 0.1}, nil)
	res, err := methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h.Reference()})
	r.must(err)
	r.finish(object.NewTask(r.c.Client, res.Returnval), nil)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateConnected)
}

func TestDriverIsPendingUntilTheReboot(t *testing.T) {
	r := launch(t, "")
	const host = "esx01.lab"
	if _, fault := r.esxcli(host, "software vib install", "depot", driverDepot); !strings.Contains(
		fault, "[MaintenanceModeError]") {
		t.Fatalf("in service: %q", fault)
	}
	r.enterMaintenance(host)
	rows, fault := r.esxcli(host, "software vib install", "depot", driverDepot, "dryrun", "true")
	if fault != "" || !strings.HasPrefix(rows[0].get("Message"), "Dryrun only") || len(r.vibNames(host, true)) != 0 {
		t.Fatalf("dry run: %v %q", rows, fault)
	}
	rows, fault = r.esxcli(host, "software vib install", "depot", driverDepot)
	if fault != "" || rows[0].get("RebootRequired") != "true" ||
		!strings.Contains(rows[0].get("VIBsInstalled"), driverName) {
		t.Fatalf("install: %v %q", rows, fault)
	}
	if slices.Contains(r.vibNames(host, false), driverName) || !slices.Contains(r.vibNames(host, true), driverName) {
		t.Error("the driver is not pending")
	}
	if !r.hostProperties(host, "summary").Summary.RebootRequired {
		t.Error("no reboot owed")
	}
	if p := r.hostProperties(host, "config").Config; len(p.SharedPassthruGpuTypes) != 0 ||
		p.GraphicsInfo[0].GraphicsType != "basic" {
		t.Errorf("before the reboot: %v %v", p.SharedPassthruGpuTypes, p.GraphicsInfo)
	}
	r.restart(host)
	if !slices.Contains(r.vibNames(host, false), driverName) || len(r.vibNames(host, true)) != 0 {
		t.Error("the driver is not installed")
	}
	if p := r.hostProperties(host, "config", "summary"); !slices.Contains(
		p.Config.SharedPassthruGpuTypes, "grid_t4-16c") || p.Summary.RebootRequired {
		t.Errorf("after the reboot: %v", p.Config.SharedPassthruGpuTypes)
	}
	rows, _ = r.esxcli(host, "software vib install", "depot", driverDepot)
	if rows[0].get("Message") != "Host is not changed." || rows[0].get("VIBsSkipped") == "" {
		t.Errorf("again: %v", rows)
	}
	rows, _ = r.esxcli(host, "software vib update", "depot", olderDepot)
	if rows[0].get("Message") != "Host is not changed." {
		t.Errorf("update to an older version: %v", rows)
	}
	rows, fault = r.esxcli(host, "software vib remove", "vibname", driverName)
	if fault != "" || rows[0].get("RebootRequired") != "true" || slices.Contains(r.vibNames(host, true), driverName) {
		t.Errorf("remove: %v %q", rows, fault)
	}
}

func TestLiveInstallNeedsNoReboot(t *testing.T) {
	r := launch(t, "")
	rows, fault := r.esxcli("esx01.lab", "software vib install", "viburl", daemonVIB)
	if fault != "" || rows[0].get("RebootRequired") != "false" ||
		!slices.Contains(r.vibNames("esx01.lab", false), "nvdgpumgmtdaemon") {
		t.Errorf("%v %q", rows, fault)
	}
}

func TestRefusedVIBs(t *testing.T) {
	r := launch(t, strings.ReplaceAll(string(labDescription(t)), `hosts:
      - {name: "esx%02d.lab", count: 5}`, `hosts: [{name: esx01.lab}, {name: esx02.lab, passthrough: [all]}]`))
	r.enterMaintenance("esx01.lab")
	r.enterMaintenance("esx02.lab")
	for _, c := range []struct{ host, command, name, value, want string }{
		{"esx01.lab", "software vib install", "viburl", homemade, "[AcceptanceConfigError]"},
		{"esx01.lab", "software vib install", "depot", "/nope.zip", "[MetadataDownloadError]"},
		{"esx01.lab", "software vib install", "viburl", "/nope.vib", "[VibDownloadError]"},
		{"esx01.lab", "software vib install", "viburl", driverDepot, "[VibFormatError]"},
		{"esx01.lab", "software vib install", "depot", daemonVIB, "not a zip file"},
		{"esx01.lab", "software vib remove", "vibname", "nope", "[NoMatchError]"},
		{"esx01.lab", "software vib get", "vibname", "nope", "[NoMatchError] id=nope"},
		{"esx02.lab", "software vib install", "depot", driverDepot, "passthrough"},
	} {
		if _, fault := r.esxcli(c.host, c.command, c.name, c.value); !strings.Contains(fault, c.want) {
			t.Errorf("%s %s %s: %q", c.host, c.command, c.value, fault)
		}
	}
	if _, fault := r.esxcli("esx01.lab", "software vib install", "nosigcheck", "true", "viburl",
		homemade); fault != "" {
		t.Errorf("without the check: %q", fault)
	}
}

func TestAcceptanceLevelByTheAPI(t *testing.T) {
	r := launch(t, "")
	m := *r.hostProperties("esx01.lab", "configManager").ConfigManager.ImageConfigManager
	_, err := methods.UpdateHostImageAcceptanceLevel(r.ctx, r.c,
		&types.UpdateHostImageAcceptanceLevel{This: m, NewAcceptanceLevel: "community"})
	r.must(err)
	got, err := methods.HostImageConfigGetAcceptance(r.ctx, r.c, &types.HostImageConfigGetAcceptance{This: m})
	r.must(err)
	if got.Returnval != "community" {
		t.Errorf("level %s", got.Returnval)
	}
	if _, fault := r.esxcli("esx01.lab", "software vib install", "viburl", homemade); fault != "" {
		t.Error(fault)
	}
	_, err = methods.UpdateHostImageAcceptanceLevel(r.ctx, r.c,
		&types.UpdateHostImageAcceptanceLevel{This: m, NewAcceptanceLevel: "partner"})
	if _, ok := faultOf(err).(types.HostConfigFault); !ok {
		t.Errorf("a level below an installed package: %v", err)
	}
	packages, err := methods.FetchSoftwarePackages(r.ctx, r.c, &types.FetchSoftwarePackages{This: m})
	r.must(err)
	if !slices.ContainsFunc(packages.Returnval, func(p types.SoftwarePackage) bool {
		return p.Name == "homemade-tool" && p.AcceptanceLevel == "community"
	}) {
		t.Error("the package is missing")
	}
}

func TestComponents(t *testing.T) {
	r := launch(t, "")
	r.enterMaintenance("esx01.lab")
	rows, fault := r.esxcli("esx01.lab", "software component apply", "depot", driverDepot)
	if fault != "" || rows[0].get("ComponentsInstalled") != "NVD-AIE-800(550.90.05-1OEM.800.1.0.20613240)" {
		t.Fatalf("%v %q", rows, fault)
	}
	r.restart("esx01.lab")
	rows, _ = r.esxcli("esx01.lab", "software component list")
	if !slices.ContainsFunc(rows, func(x row) bool { return x.get("Name") == "NVD-AIE-800" }) {
		t.Errorf("components: %v", rows)
	}
	rows, _ = r.esxcli("esx01.lab", "software component apply", "depot", olderDepot)
	if rows[0].get("Message") != "Host is not changed." {
		t.Errorf("a downgrade: %v", rows)
	}
}

func TestDeafInstallSoundsLikeARealOne(t *testing.T) {
	r := launch(t, "")
	r.enterMaintenance("esx01.lab")
	r.fault(map[string]any{"method": "esxcli software vib install", "count": front.Forever, "kind": "deaf"})
	rows, fault := r.esxcli("esx01.lab", "software vib install", "depot", driverDepot)
	if fault != "" || rows[0].get("RebootRequired") != "true" || strings.Contains(rows[0].get("Message"), "Dryrun") {
		t.Errorf("%v %q", rows, fault)
	}
	if len(r.vibNames("esx01.lab", true)) != 0 {
		t.Error("the deaf host heard")
	}
}

const gpuHost = `
host_defaults: {hardware: t4_cx5, reboot_seconds: 0.1}
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: 550.90.05, vendor: NVIDIA}]}
      - {name: esx02.lab, hardware: a100_cx6}
`

func (r *running) graphics(host string) (types.ManagedObjectReference, mo.HostGraphicsManager) {
	r.t.Helper()
	ref := *r.hostProperties(host, "configManager").ConfigManager.GraphicsManager
	var m mo.HostGraphicsManager
	r.must(r.c.RetrieveOne(r.ctx, ref, nil, &m))
	return ref, m
}

func TestGraphicsConfiguredAndActive(t *testing.T) {
	r := launch(t, gpuHost)
	ref, m := r.graphics("esx01.lab")
	if m.GraphicsInfo[0].GraphicsType != "shared" || len(m.SharedPassthruGpuTypes) == 0 {
		t.Fatalf("at the start: %+v", m)
	}
	want := types.HostGraphicsConfig{HostDefaultGraphicsType: "sharedDirect",
		SharedPassthruAssignmentPolicy: "consolidation",
		DeviceType: []types.HostGraphicsConfigDeviceType{
			{DeviceId: "0000:3b:00.0", GraphicsType: "sharedDirect"}}}
	_, err := methods.UpdateGraphicsConfig(r.ctx, r.c, &types.UpdateGraphicsConfig{This: ref, Config: want})
	r.must(err)
	_, m = r.graphics("esx01.lab")
	if m.GraphicsConfig.HostDefaultGraphicsType != "sharedDirect" || m.GraphicsInfo[0].GraphicsType != "shared" {
		t.Errorf("stored: %+v", m)
	}
	services := *r.hostProperties("esx01.lab", "configManager").ConfigManager.ServiceSystem
	_, err = methods.RestartService(r.ctx, r.c, &types.RestartService{This: services, Id: "xorg"})
	r.must(err)
	if info := r.hostProperties("esx01.lab",
		"config.graphicsInfo").Config.GraphicsInfo; info[0].GraphicsType != "sharedDirect" {
		t.Errorf("after xorg: %+v", info)
	}
	rows, _ := r.esxcli("esx01.lab", "graphics host get")
	if rows[0].get("DefaultGraphicsType") != "SharedPassthru" ||
		rows[0].get("SharedPassthruAssignmentPolicy") != "Consolidation" {
		t.Errorf("esxcli: %v", rows)
	}
	for _, bad := range []types.HostGraphicsConfig{
		{HostDefaultGraphicsType: "nope", SharedPassthruAssignmentPolicy: "performance"},
		{HostDefaultGraphicsType: "shared", SharedPassthruAssignmentPolicy: "nope"},
		{HostDefaultGraphicsType: "shared", SharedPassthruAssignmentPolicy: "performance",
			DeviceType: []types.HostGraphicsConfigDeviceType{{DeviceId: "0000:99:00.0", GraphicsType: "shared"}}},
	} {
		_, err := methods.UpdateGraphicsConfig(r.ctx, r.c, &types.UpdateGraphicsConfig{This: ref, Config: bad})
		if _, ok := faultOf(err).(types.InvalidArgument); !ok {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestPassthroughIsActiveAfterTheReboot(t *testing.T) {
	r := launch(t, gpuHost)
	system := *r.hostProperties("esx01.lab", "configManager").ConfigManager.PciPassthruSystem
	config := []types.BaseHostPciPassthruConfig{
		&types.HostPciPassthruConfig{Id: "0000:3b:00.0", PassthruEnabled: true}}
	_, err := methods.UpdatePassthruConfig(r.ctx, r.c, &types.UpdatePassthruConfig{This: system, Config: config})
	r.must(err)
	gpu := func() *types.HostPciPassthruInfo {
		for _, p := range r.hostProperties("esx01.lab", "config.pciPassthruInfo").Config.PciPassthruInfo {
			if i := p.GetHostPciPassthruInfo(); i.Id == "0000:3b:00.0" {
				return i
			}
		}
		return nil
	}
	if p := gpu(); !p.PassthruEnabled || p.PassthruActive {
		t.Errorf("before: %+v", p)
	}
	r.enterMaintenance("esx01.lab")
	r.restart("esx01.lab")
	if p := gpu(); !p.PassthruActive {
		t.Errorf("after: %+v", p)
	}
	if _, m := r.graphics("esx01.lab"); m.GraphicsInfo[0].GraphicsType != "direct" ||
		len(m.SharedPassthruGpuTypes) != 0 {
		t.Errorf("graphics: %+v", m)
	}
}

func TestHardwareTellsIdsAndNodes(t *testing.T) {
	r := launch(t, gpuHost)
	h := r.hostProperties("esx02.lab", "hardware").Hardware
	found := false
	for _, d := range h.PciDevice {
		found = found || (d.Id == "0000:ca:00.0" && uint16(d.VendorId) == 0x10de && uint16(d.DeviceId) == 0x20f1 &&
			d.Bus == 0xca)
	}
	if !found || !slices.Contains(h.NumaInfo.NumaNode[1].PciId, "0000:ca:00.0") {
		t.Errorf("devices %+v, nodes %+v", h.PciDevice, h.NumaInfo)
	}
}
