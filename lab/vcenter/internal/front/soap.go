package front

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// Call is a SOAP call as far as the front parses it: user, method, object.
type Call struct {
	Method string // the vSphere method, or "esxcli software vib install" for ExecuteSoap
	SOAP   string // the method on the wire
	Object types.ManagedObjectReference
	About  types.ManagedObjectReference // the entity that a manager's call names, where that matters
	DryRun bool
	User   string
}

// parseCall parses the beginning of an envelope.
func parseCall(body []byte) (Call, error) {
	var c Call
	d := xml.NewDecoder(bytes.NewReader(body))
	inBody := false
	for {
		t, err := d.Token()
		if err != nil {
			return c, fmt.Errorf("not a SOAP call: %w", err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch {
		case !inBody:
			inBody = start.Name.Local == "Body"
		case c.SOAP == "":
			c.SOAP, c.Method = start.Name.Local, start.Name.Local
		case start.Name.Local == "_this":
			c.Object, err = reference(d, start)
			switch {
			case err == nil && c.SOAP == "ExecuteSoap":
				err = c.esxcli(d)
			case err == nil && c.SOAP == "SetField":
				err = c.entity(d)
			}
			return c, err
		default:
			return c, fmt.Errorf("%s: the call names no object", c.SOAP)
		}
	}
}

func reference(d *xml.Decoder, start xml.StartElement) (types.ManagedObjectReference, error) {
	var ref types.ManagedObjectReference
	for _, a := range start.Attr {
		if a.Name.Local == "type" {
			ref.Type = a.Value[strings.LastIndex(a.Value, ":")+1:]
		}
	}
	err := d.DecodeElement(&ref.Value, &start)
	ref.Value = strings.TrimSpace(ref.Value)
	return ref, err
}

// entity reads the entity of a SetField call.
func (c *Call) entity(d *xml.Decoder) error {
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the envelope's end
		}
		if start, ok := t.(xml.StartElement); ok && start.Name.Local == "entity" {
			c.About, err = reference(d, start)
			return err
		}
	}
}

// esxcli reads the rest of an ExecuteSoap call: the command and whether it is a dry run.
func (c *Call) esxcli(d *xml.Decoder) error {
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the envelope's end
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		var text string
		switch start.Name.Local {
		case "method":
			if err := d.DecodeElement(&text, &start); err != nil {
				return err
			}
			c.Method = "esxcli " + strings.ReplaceAll(strings.TrimPrefix(text, "vim.EsxCLI."), ".", " ")
		case "val":
			if err := d.DecodeElement(&text, &start); err != nil {
				return err
			}
			c.DryRun = c.DryRun || strings.Contains(text, "<dryrun>true</dryrun>")
		}
	}
}

// vimNamespace is the XML namespace of the vSphere API.
const vimNamespace = "urn:vim25"

// schemas are the XML namespaces of simple types.
const schemas = `xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

const envelope = `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" ` + schemas +
	`><soapenv:Body>%s</soapenv:Body></soapenv:Envelope>`

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a bytes.Buffer does not fail
	return b.String()
}

// faultEnvelope returns a SOAP fault of a type; fields are the elements of the fault as XML.
func faultEnvelope(kind, message, fields string) string {
	return fmt.Sprintf(envelope, fmt.Sprintf(
		`<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>%s</faultstring>`+
			`<detail><%sFault xmlns="%s" xsi:type="%s">%s</%sFault></detail></soapenv:Fault>`,
		escape(message), kind, vimNamespace, kind, fields, kind))
}

// emptyEnvelope returns the answer of a method that returns nothing.
func emptyEnvelope(method string) string {
	return fmt.Sprintf(envelope, fmt.Sprintf(`<%sResponse xmlns="%s"></%sResponse>`, method, vimNamespace, method))
}

// taskEnvelope returns the answer of a method that returns a task.
func taskEnvelope(method string, task types.ManagedObjectReference) string {
	return fmt.Sprintf(envelope,
		fmt.Sprintf(`<%sResponse xmlns="%s"><returnval type="Task">%s</returnval></%sResponse>`,
			method, vimNamespace, escape(task.Value), method))
}

// esxcliEnvelope returns the answer of an esxcli command that returns "true".
func esxcliEnvelope() string {
	inner := `<obj xmlns="urn:vim25" ` + schemas + ` xsi:type="xsd:boolean">true</obj>`
	return fmt.Sprintf(envelope,
		fmt.Sprintf(
			`<ExecuteSoapResponse xmlns="%s"><returnval><response>%s</response></returnval></ExecuteSoapResponse>`,
			vimNamespace, escape(inner)))
}
