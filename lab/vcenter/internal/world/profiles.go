package world

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// profileManager is the HostProfileManager: just enough to see which host a profile is attached to.
type profileManager struct {
	mo.HostProfileManager
	sim *Sim
}

var profileManagerRef = ref{Type: "HostProfileManager", Value: "HostProfileManager"}

func installProfiles(sim *Sim) {
	m := &profileManager{sim: sim}
	m.Self = profileManagerRef
	sim.reg.Put(m)
}

// FindAssociatedProfile lists the profiles attached to an entity.
func (m *profileManager) FindAssociatedProfile(ctx *simulator.Context, req *types.FindAssociatedProfile) soap.HasFault {
	res := new(types.FindAssociatedProfileResponse)
	for _, r := range m.Profile {
		p := m.sim.reg.Get(r).(*mo.HostProfile)
		ctx.WithLock(p, func() {
			if slices.Contains(p.Entity, req.Entity) {
				res.Returnval = append(res.Returnval, r)
			}
		})
	}
	return &methods.FindAssociatedProfileBody{Res: res}
}

// attachProfile attaches a host profile, made when there is none of the name; "" detaches the host from all.
func attachProfile(ctx *simulator.Context, host ref, name string) {
	m := ctx.Map.Get(profileManagerRef).(*profileManager)
	ctx.WithLock(m, func() {
		found := false
		for _, r := range m.Profile {
			p := ctx.Map.Get(r).(*mo.HostProfile)
			ctx.WithLock(p, func() {
				entities := slices.DeleteFunc(slices.Clone(p.Entity), func(e ref) bool { return e == host })
				if p.Name == name {
					found = true
					entities = append(entities, host)
				}
				ctx.Update(p, []types.PropertyChange{change("entity", entities)})
			})
		}
		if !found && name != "" {
			p := &mo.HostProfile{Profile: mo.Profile{Name: name, CreatedTime: time.Now(), ModifiedTime: time.Now(), Entity: []ref{host}, ComplianceStatus: "unknown"}}
			p.Self = ref{Type: "HostProfile", Value: "hostprofile-" + name}
			p.Config = &types.HostProfileConfigInfo{ProfileConfigInfo: types.ProfileConfigInfo{Name: name, Enabled: true}}
			ctx.Map.Put(p)
			ctx.Update(m, []types.PropertyChange{change("profile", append(slices.Clone(m.Profile), p.Self))})
		}
	})
}
