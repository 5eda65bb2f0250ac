package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// profileManager is the HostProfileManager: it shows which host profile is attached to which host.
type profileManager struct {
	mo.HostProfileManager
	sim *vcsim.Sim
}

var profileManagerRef = vcsim.Ref{Type: "HostProfileManager", Value: "HostProfileManager"}

func installProfiles(sim *vcsim.Sim) {
	m := &profileManager{sim: sim}
	m.Self = profileManagerRef
	sim.Registry.Put(m)
}

// FindAssociatedProfile returns the host profiles that are attached to an entity.
// VMware: vSphere API reference, ProfileManager.FindAssociatedProfile.
func (m *profileManager) FindAssociatedProfile(
	ctx *simulator.Context, req *types.FindAssociatedProfile,
) soap.HasFault {
	res := new(types.FindAssociatedProfileResponse)
	for _, r := range m.Profile {
		p := m.sim.Registry.Get(r).(*mo.HostProfile)
		ctx.WithLock(p, func() {
			if slices.Contains(p.Entity, req.Entity) {
				res.Returnval = append(res.Returnval, r)
			}
		})
	}
	return &methods.FindAssociatedProfileBody{Res: res}
}

// attachProfile attaches a host profile, and creates it if no profile has this name; "" detaches the host from all
// profiles.
func attachProfile(sim *vcsim.Sim, ctx *simulator.Context, host vcsim.Ref, name string) {
	m := ctx.Map.Get(profileManagerRef).(*profileManager)
	ctx.WithLock(m, func() {
		found := false
		for _, r := range m.Profile {
			p := ctx.Map.Get(r).(*mo.HostProfile)
			ctx.WithLock(p, func() {
				entities := slices.DeleteFunc(slices.Clone(p.Entity), func(e vcsim.Ref) bool { return e == host })
				if p.Name == name {
					found = true
					entities = append(entities, host)
				}
				ctx.Update(p, []types.PropertyChange{vcsim.Change("entity", entities)})
			})
		}
		if !found && name != "" {
			p := &mo.HostProfile{Profile: mo.Profile{Name: name, CreatedTime: sim.Now(), ModifiedTime: sim.Now(),
				Entity: []vcsim.Ref{host}, ComplianceStatus: "unknown"}}
			p.Self = vcsim.Ref{Type: "HostProfile", Value: "hostprofile-" + name}
			p.Config = &types.HostProfileConfigInfo{
				ProfileConfigInfo: types.ProfileConfigInfo{Name: name, Enabled: true}}
			ctx.Map.Put(p)
			ctx.Update(m, []types.PropertyChange{vcsim.Change("profile", append(slices.Clone(m.Profile), p.Self))})
		}
	})
}
