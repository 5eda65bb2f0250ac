package software

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// imageConfigManager is a host's HostImageConfigManager.
type imageConfigManager struct {
	mo.HostImageConfigManager
	software *System
}

// FetchSoftwarePackages returns the running packages.
// VMware: vSphere API reference 6.5, HostImageConfigManager.FetchSoftwarePackages, SoftwarePackage.
func (m *imageConfigManager) FetchSoftwarePackages(
	ctx *simulator.Context, _ *types.FetchSoftwarePackages,
) soap.HasFault {
	body := new(methods.FetchSoftwarePackagesBody)
	if body.Fault_ = m.software.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	body.Res = new(types.FetchSoftwarePackagesResponse)
	running, _ := m.software.images()
	for _, v := range running.sorted() {
		maintenance, live := needsMaintenance(v), v.LiveInstall
		body.Res.Returnval = append(body.Res.Returnval, types.SoftwarePackage{
			Name: v.Name, Version: v.Version, Type: "bootbank", Vendor: v.Vendor,
			AcceptanceLevel: levels[rank(v.AcceptanceLevel)].api,
			Summary:         v.Summary, Description: v.Summary, MaintenanceModeRequired: &maintenance,
			Capability: types.SoftwarePackageCapability{LiveInstallAllowed: &live, LiveRemoveAllowed: &live,
				StatelessReady: types.NewBool(true), Overlay: types.NewBool(false)},
			Payload: []string{v.Name},
		})
	}
	return body
}

// HostImageConfigGetAcceptance returns the acceptance level of the host.
// VMware: vSphere API reference, HostImageAcceptanceLevel.
func (m *imageConfigManager) HostImageConfigGetAcceptance(
	ctx *simulator.Context, _ *types.HostImageConfigGetAcceptance,
) soap.HasFault {
	body := new(methods.HostImageConfigGetAcceptanceBody)
	if body.Fault_ = m.software.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	m.software.mu.Lock()
	defer m.software.mu.Unlock()
	body.Res = &types.HostImageConfigGetAcceptanceResponse{Returnval: levels[rank(m.software.acceptance)].api}
	return body
}

// UpdateHostImageAcceptanceLevel sets the acceptance level of the host, unless an installed package has a lower one.
// VMware: pyVmomi 9.1, faults of UpdateHostImageAcceptanceLevel: HostConfigFault; esxcli software acceptance set also
// refuses this.
func (m *imageConfigManager) UpdateHostImageAcceptanceLevel(
	ctx *simulator.Context, req *types.UpdateHostImageAcceptanceLevel,
) soap.HasFault {
	body := new(methods.UpdateHostImageAcceptanceLevelBody)
	if body.Fault_ = m.software.host.Unreachable(ctx); body.Fault_ != nil {
		return body
	}
	if rank(req.NewAcceptanceLevel) < 0 {
		body.Fault_ = vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: "newAcceptanceLevel"})
		return body
	}
	if m.software.accept(req.NewAcceptanceLevel) != "" {
		body.Fault_ = simulator.Fault("A package of the host has a lower acceptance level.", &types.HostConfigFault{})
		return body
	}
	body.Res = new(types.UpdateHostImageAcceptanceLevelResponse)
	return body
}

// accept sets the acceptance level of the host, and returns the package that forbids the level, or "" if none does.
func (s *System) accept(level string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.image.sorted() {
		if rank(v.AcceptanceLevel) > rank(level) {
			return id(v)
		}
	}
	s.acceptance = levels[rank(level)].api
	return ""
}

// HostImageConfigGetProfile returns the image profile of the host: ESXi-VERSION-BUILD-standard.
// Ours: VMware uses versions such as 8.0U3 in these names, the simulator 8.0.3.
func (m *imageConfigManager) HostImageConfigGetProfile(*types.HostImageConfigGetProfile) soap.HasFault {
	name, vendor := m.software.profile()
	return &methods.HostImageConfigGetProfileBody{
		Res: &types.HostImageConfigGetProfileResponse{
			Returnval: types.HostImageProfileSummary{Name: name, Vendor: vendor}}}
}

// InstallDate returns the day of the host's installation, a constant.
// VMware: vSphere API reference, HostImageConfigManager.InstallDate.
func (m *imageConfigManager) InstallDate(*types.InstallDate) soap.HasFault {
	day, err := time.Parse(time.DateOnly, InstallDate)
	if err != nil {
		panic(err) // a constant
	}
	return &methods.InstallDateBody{Res: &types.InstallDateResponse{Returnval: day}}
}

func (s *System) profile() (name, vendor string) {
	return "ESXi-" + s.host.Sim.Description.Version + "-" + s.host.Sim.Description.Build + "-standard", "VMware, Inc."
}

// profileGet returns name, vendor and acceptance level of the image profile.
// Ours: the names of the fields are general knowledge (unproven).
func (s *System) profileGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	name, vendor := s.profile()
	return esxcli.Rows("ImageProfile",
		esxcli.Record("Name", name, "Vendor", vendor, "AcceptanceLevel", "PartnerSupported")), nil
}

// acceptanceGet returns the acceptance level in the format of VIBs.
// VMware: VMware documentation, acceptance levels: VMwareCertified, VMwareAccepted, PartnerSupported,
// CommunitySupported.
func (s *System) acceptanceGet(*simulator.Context, esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &esxcli.Response{Kind: "string", String: levels[rank(s.acceptance)].vib}, nil
}

// acceptanceSet sets the acceptance level of the host, unless an installed package has a lower one.
// VMware: VMware documentation, esxcli software acceptance set.
// Ours: the texts of the refusals (unproven).
func (s *System) acceptanceSet(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	level := a.Value("level")
	if rank(level) < 0 {
		return nil, esxcli.Errorf("Invalid data constraint for parameter 'level'.")
	}
	if vib := s.accept(level); vib != "" {
		return nil,
			&esxcli.Error{Lines: []string{"[AcceptanceConfigError]",
				"VIB " + vib + " has a lower acceptance level than " + level + ".", seeLog}}
	}
	return &esxcli.Response{Kind: "string",
		String: "Host acceptance level changed to '" + levels[rank(level)].vib + "'."}, nil
}
