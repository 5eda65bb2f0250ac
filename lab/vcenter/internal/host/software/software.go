// Package software simulates the packages of a host: VIBs, components, image profile, acceptance level.
//
// vcsim: a constant list of packages, not used.
package software

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/modules"
	"dml.vsphere/lab/vcenter/internal/host/pci"
)

// image is a set of VIBs by name; images are replaced, never changed in place.
type image map[string]datacentre.VIB

// levels are the acceptance levels from strict to lax, in the format of VIBs and of the API.
var levels = []struct{ vib, api string }{
	{"VMwareCertified", "vmware_certified"}, {"VMwareAccepted", "vmware_accepted"}, {"PartnerSupported", "partner"},
	{"CommunitySupported", "community"},
}

// rank returns the position of a level from strict to lax, or -1 for an unknown one.
func rank(level string) int {
	for i, l := range levels {
		if l.vib == level || l.api == level {
			return i
		}
	}
	return -1
}

// isGPUDriver matches the packages of NVIDIA's host driver.
// VMware: NVIDIA's and VMware's guides and public lists of packages: NVIDIA-VMware, NVIDIA-vGPU-VMware, NVIDIA-AIE,
// NVD-AIE, NVD-VGPU, NVD-VMware. Other names (NVIDIA-AIE, NVIDIA-vGPU-VMware) exist and are not matched.
var isGPUDriver = regexp.MustCompile(`^(?i)(NVIDIA|NVD)-(AIE|VGPU|VMware)`)

// isGPUDaemon matches the package of NVIDIA's monitoring daemon.
// VMware: NVIDIA AI Enterprise user guide for vSphere: nvd-gpu-mgmt-daemon, nvdgpumgmtdaemon.
var isGPUDaemon = regexp.MustCompile(`(?i)nvd.?gpu.?mgmt.?daemon`)

// System is the packages of a host: the image that runs and the one of the next boot.
type System struct {
	host    *host.Host
	modules *modules.System
	pci     *pci.System

	mu         sync.Mutex // guards what follows; never held while a vcsim lock is taken
	image      image
	pending    image // for the next boot; nil if it is the running one
	acceptance string
}

// New installs the base packages, the drivers and the packages of the description.
func New(
	ctx *simulator.Context, h *host.Host, cli *esxcli.Executer, modules *modules.System, pci *pci.System,
) *System {
	s := &System{host: h, modules: modules, pci: pci, image: image{}, acceptance: h.Spec.AcceptanceLevel}
	for _, v := range append(s.baseVIBs(), h.Spec.VIBs...) {
		v.AcceptanceLevel = cmp.Or(v.AcceptanceLevel, "VMwareAccepted")
		s.image[v.Name] = v
	}
	m := &imageConfigManager{software: s}
	m.Self = h.ManagerRef("HostImageConfigManager", "imageConfigManager")
	h.Entity.ConfigManager.ImageConfigManager = h.Manager(ctx, m)
	h.AddRebootReason(s.needsReboot)
	cli.Add(s.vibCommands())
	cli.Add(s.componentCommands())
	return s
}

// baseVIBs returns the packages of every host.
func (s *System) baseVIBs() []datacentre.VIB {
	no := false
	desc := s.host.Sim.Description
	build := desc.Version + "-0.0." + desc.Build
	list := []datacentre.VIB{
		{Name: "esx-base", Version: build, Vendor: "VMware", AcceptanceLevel: "VMwareCertified",
			Summary: "ESXi base system", Component: "ESXi", ComponentTitle: "ESXi"},
		{Name: "esx-ui", Version: "2.18.0-23593406", Vendor: "VMware", AcceptanceLevel: "VMwareCertified",
			Summary: "VMware Host Client", LiveInstall: true, MaintenanceRequired: &no},
	}
	for _, m := range s.modules.List() {
		list = append(list, datacentre.VIB{Name: strings.ReplaceAll(m.Name, "_", "-"),
			Version: m.Version + "-1vmw.803.0.0.24022510", Vendor: "VMW",
			AcceptanceLevel: "VMwareCertified", Summary: m.Name + " driver"})
	}
	return list
}

// images returns the running image and the pending image of the next boot, which is nil if none is pending.
func (s *System) images() (running, pending image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.image, s.pending
}

// needsReboot reports whether packages wait for the next boot.
func (s *System) needsReboot() bool {
	_, pending := s.images()
	return pending != nil
}

// Boot makes the pending image the running one.
func (s *System) Boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		s.image, s.pending = s.pending, nil
	}
}

// GPUDriver returns the running package of NVIDIA's host driver.
func (s *System) GPUDriver() (datacentre.VIB, bool) {
	running, _ := s.images()
	var driver datacentre.VIB
	found := false
	for _, v := range running.sorted() {
		if isGPUDriver.MatchString(v.Name) {
			driver, found = v, true
		}
	}
	return driver, found
}

// HasGPUDaemon reports whether NVIDIA's monitoring daemon is installed and running.
func (s *System) HasGPUDaemon() bool {
	running, _ := s.images()
	return running.has(isGPUDaemon)
}

// VendorComponents returns the versions of the running components by name, without those of ESXi.
func (s *System) VendorComponents() map[string]string {
	running, _ := s.images()
	components := map[string]string{}
	for _, v := range running {
		if v.Component != "" && v.Component != "ESXi" {
			components[v.Component] = v.Version
		}
	}
	return components
}

// has reports whether the image contains a package with a matching name.
func (i image) has(name *regexp.Regexp) bool {
	for n := range i {
		if name.MatchString(n) {
			return true
		}
	}
	return false
}

// sorted returns the packages, sorted by name.
func (i image) sorted() []datacentre.VIB {
	var out []datacentre.VIB
	for _, v := range i {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b datacentre.VIB) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// id returns the package's id in the format of esxcli.
func id(v datacentre.VIB) string { return v.Vendor + "_bootbank_" + v.Name + "_" + v.Version }

func needsMaintenance(v datacentre.VIB) bool {
	return v.MaintenanceRequired == nil || *v.MaintenanceRequired
}

// named reports whether a search (name, name:version, vendor:name or vendor:name:version) matches the package.
func named(v datacentre.VIB, search string) bool {
	switch search {
	case v.Name, v.Name + ":" + v.Version, v.Vendor + ":" + v.Name, v.Vendor + ":" + v.Name + ":" + v.Version:
		return true
	}
	return false
}

var versionPart = regexp.MustCompile(`\d+|[^\d.\-]+`)

// newer compares versions part by part, numbers as numbers.
func newer(a, b string) bool {
	x, y := versionPart.FindAllString(a, -1), versionPart.FindAllString(b, -1)
	return slices.CompareFunc(x, y, func(p, q string) int {
		m, errM := strconv.Atoi(p)
		n, errN := strconv.Atoi(q)
		if errM == nil && errN == nil {
			return cmp.Compare(m, n)
		}
		return cmp.Compare(p, q)
	}) > 0
}

// depot returns the packages that the description has for a path or URL.
func (s *System) depot(path string) ([]datacentre.VIB, bool) {
	for _, d := range s.host.Sim.Description.Depots {
		if slices.Contains(d.Paths, path) || slices.Contains(d.Paths, strings.TrimPrefix(path, "file://")) {
			var out []datacentre.VIB
			for _, v := range d.VIBs {
				v.AcceptanceLevel = cmp.Or(v.AcceptanceLevel, "VMwareAccepted")
				out = append(out, v)
			}
			return out, true
		}
	}
	return nil, false
}
