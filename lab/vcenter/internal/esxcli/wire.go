package esxcli

import (
	"github.com/vmware/govmomi/vim25/soap"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// The types below are those of esxcli on the wire; govmomi has them in an internal package.

type soapResultFault struct {
	FaultMsg    string `xml:"faultMsg"`
	FaultDetail string `xml:"faultDetail,omitempty"`
}

type soapResult struct {
	Response string           `xml:"response,omitempty"`
	Fault    *soapResultFault `xml:"fault,omitempty"`
}

type executeSoapResponse struct {
	Returnval *soapResult `xml:"urn:vim25 returnval"`
}

type executeSoapBody struct {
	Res    *executeSoapResponse `xml:"urn:vim25 ExecuteSoapResponse,omitempty"`
	Fault_ *soap.Fault          `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// Fault is part of soap.HasFault.
func (b *executeSoapBody) Fault() *soap.Fault { return b.Fault_ }

type retrieveExecuterResponse struct {
	Returnval vcsim.Ref `xml:"urn:vim25 returnval"`
}

type retrieveTypesBody struct {
	Res    *retrieveExecuterResponse `xml:"urn:vim25 RetrieveDynamicTypeManagerResponse,omitempty"`
	Fault_ *soap.Fault               `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// Fault is part of soap.HasFault.
func (b *retrieveTypesBody) Fault() *soap.Fault { return b.Fault_ }

type retrieveExecuterBody struct {
	Res    *retrieveExecuterResponse `xml:"urn:vim25 RetrieveManagedMethodExecuterResponse,omitempty"`
	Fault_ *soap.Fault               `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// Fault is part of soap.HasFault.
func (b *retrieveExecuterBody) Fault() *soap.Fault { return b.Fault_ }
