package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	// The endpoints of VMware's simulator program in addition to the vSphere API: each package adds one.
	_ "github.com/vmware/govmomi/cns/simulator"
	_ "github.com/vmware/govmomi/eam/simulator"
	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	_ "github.com/vmware/govmomi/ssoadmin/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	_ "github.com/vmware/govmomi/vapi/appliance/simulator"
	_ "github.com/vmware/govmomi/vapi/cis/tasks/simulator"
	_ "github.com/vmware/govmomi/vapi/cluster/simulator"
	_ "github.com/vmware/govmomi/vapi/crypto/simulator"
	_ "github.com/vmware/govmomi/vapi/esx/settings/clusters/vms/simulator"
	_ "github.com/vmware/govmomi/vapi/esx/settings/simulator"
	_ "github.com/vmware/govmomi/vapi/namespace/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
	_ "github.com/vmware/govmomi/vapi/vcenter/consumptiondomains/simulator"
	_ "github.com/vmware/govmomi/vapi/vm/simulator"
	_ "github.com/vmware/govmomi/vsan/simulator"
	_ "github.com/vmware/govmomi/vslm/simulator"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/pbm"
	pbmtypes "github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/front"
)

// handler returns the handler of all endpoints of vcsim. Only endpoints that are clients of the vSphere API
// themselves, such as the content library, use the server of vcsim; other clients do not see it.
func handler(s *simulator.Service, address string, o options) (http.Handler, *simulator.Server) {
	s.RegisterEndpoints = true
	s.ServeMux = http.NewServeMux()
	s.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword(o.username, o.password)}
	stock := s.NewServer()
	s.Listen.Scheme, s.Listen.Host = "https", address
	sessions := s.Context.Map.SessionManager()
	sessions.ServiceHostName = address
	others := sessions.ValidLogin // users that a client has created
	sessions.ValidLogin = func(req *types.Login) bool {
		return req.UserName == o.username && req.Password == o.password || others != nil && others(req)
	}
	tellAddress(s.Context.Map.OptionManager().Setting, address)
	return s.ServeMux, stock
}

// storagePolicies returns the storage policies of vcsim's SPBM, with a client of its server.
func storagePolicies(stock *simulator.Server) (found []front.Policy, err error) {
	ctx := context.Background()
	c, err := govmomi.NewClient(ctx, stock.URL, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Logout(ctx) }()
	spbm, err := pbm.NewClient(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	storage := pbmtypes.PbmProfileResourceType{ResourceType: string(pbmtypes.PbmProfileResourceTypeEnumSTORAGE)}
	ids, err := spbm.QueryProfile(ctx, storage, string(pbmtypes.PbmProfileCategoryEnumREQUIREMENT))
	if err != nil {
		return nil, err
	}
	profiles, err := spbm.RetrieveContent(ctx, ids)
	for _, p := range profiles {
		one := p.GetPbmProfile()
		found = append(found, front.Policy{ID: one.ProfileId.UniqueId, Name: one.Name, Description: one.Description})
	}
	return found, err
}

// tellAddress sets the address of this server in the options that name its endpoints, because the server of vcsim is
// closed.
func tellAddress(settings []types.BaseOptionValue, address string) {
	for _, o := range settings {
		option := o.GetOptionValue()
		text, ok := option.Value.(string)
		if !ok || !(strings.HasSuffix(option.Key, ".uri") || option.Key == "vcsim.server.url") {
			continue
		}
		if u, err := url.Parse(text); err == nil {
			u.Scheme, u.Host = "https", address
			option.Value = u.String()
		}
	}
}
