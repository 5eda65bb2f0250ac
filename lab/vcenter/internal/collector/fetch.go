// Package collector simulates the PropertyCollector.
//
// vcsim: reads, filters, pages and updates.
package collector

import (
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// propertyCollector is the PropertyCollector of vcsim with fixes.
type propertyCollector struct {
	simulator.PropertyCollector
	watched watched
}

type fetchResponse struct {
	Returnval types.AnyType `xml:"returnval,omitempty,typeattr"`
}

type fetchBody struct {
	Res    *fetchResponse `xml:"FetchResponse,omitempty"`
	Fault_ *soap.Fault    `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// Fault is part of soap.HasFault.
func (b *fetchBody) Fault() *soap.Fault { return b.Fault_ }

// Fetch reads one property; an unset property is an empty answer. Its request has a type internal to govmomi, so it is
// read by reflection.
// VMware: pyVmomi 9.1 reads an empty answer as unset. vcsim sends the answer of RetrievePropertiesEx instead, which
// pyVmomi cannot read.
func (p *propertyCollector) Fetch(ctx *simulator.Context, req any) soap.HasFault {
	asked := reflect.ValueOf(req).Elem()
	if f := refusePath(ctx, asked.FieldByName("This").Interface().(vcsim.Ref).Type,
		asked.FieldByName("Prop").String()); f != nil {
		return &fetchBody{Fault_: vcsim.SoapFault(f)}
	}
	if answer := p.replaced(ctx, asked.FieldByName("This").Interface().(vcsim.Ref),
		asked.FieldByName("Prop").String()); answer != nil {
		return answer
	}
	stock := reflect.ValueOf(&p.PropertyCollector).MethodByName("Fetch")
	body := stock.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req)})[0].Interface().(soap.HasFault)
	if body.Fault() != nil {
		return body
	}
	if fetched(body) {
		value := reflect.ValueOf(body).Elem().FieldByName("Res").Elem().FieldByName("Returnval").Interface()
		return &fetchBody{Res: &fetchResponse{Returnval: knownBy(ctx).Scrub(value)}}
	}
	return &fetchBody{Res: &fetchResponse{}}
}

// replaced returns the properties that vcsim returns wrongly or not at all: ServiceInstance.content with all
// managers, and configManagerEnabled of clusters.
// VMware: vSphere API reference, ServiceContent.hostProfileManager. vcsim leaves out this manager and others.
func (p *propertyCollector) replaced(ctx *simulator.Context, this vcsim.Ref, property string) soap.HasFault {
	switch {
	case this == vim25.ServiceInstance && property == "content":
		service := ctx.Map.Get(vim25.ServiceInstance).(*simulator.ServiceInstance)
		return &fetchBody{Res: &fetchResponse{Returnval: service.Content}}
	case this.Type == "ClusterComputeResource" && property == configManaged:
		return &fetchBody{Res: &fetchResponse{Returnval: underConfiguration(ctx, this)}}
	}
	return nil
}

// fetched reports whether an answer contains a property with a value.
func fetched(body soap.HasFault) bool {
	res := reflect.ValueOf(body).Elem().FieldByName("Res").Elem()
	if res.Type().Name() != "FetchResponse" {
		return false
	}
	value := res.FieldByName("Returnval")
	for value.IsValid() && (value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer) {
		value = value.Elem()
	}
	if !value.IsValid() {
		return false
	}
	reference, ok := value.Interface().(types.ManagedObjectReference)
	return !ok || reference.Value != ""
}

// Install replaces the PropertyCollector of vcsim.
func Install(
	sim *vcsim.Sim, configured func(cluster vcsim.Ref) bool, bindings func(host vcsim.Ref) []Binding,
	modes func(host vcsim.Ref) map[string]DirectPathState,
) {
	content := sim.Registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content
	pc := &propertyCollector{}
	pc.Self = content.PropertyCollector
	sim.Registry.Put(pc)
	sim.Registry.Put(&clusterSource{View: mo.View{Self: clusterSourceRef}, underConfiguration: configured,
		hostSource: hostSource{bindings, modes}, knows: sim.Knows})
}
