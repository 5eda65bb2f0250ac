package main

import (
	"strings"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// With the types below, tests call esxcli over SOAP as the modules do: govmomi's client first requests command
// descriptions, which vcsim has only for a few commands.

type soapArg struct {
	Name string `xml:"name"`
	Val  string `xml:"val"`
}

type executeSoapRequest struct {
	XMLName  xml.Name                     `xml:"urn:vim25 ExecuteSoap"`
	This     types.ManagedObjectReference `xml:"_this"`
	Moid     string                       `xml:"moid"`
	Version  string                       `xml:"version"`
	Method   string                       `xml:"method"`
	Argument []soapArg                    `xml:"argument,omitempty"`
}

type executeSoapReply struct {
	Req *executeSoapRequest `xml:"urn:vim25 ExecuteSoap,omitempty"`
	Res *struct {
		Returnval struct {
			Response string `xml:"response"`
			Fault    *struct {
				FaultDetail string `xml:"faultDetail"`
			} `xml:"fault"`
		} `xml:"returnval"`
	} `xml:"ExecuteSoapResponse"`
	Fault_ *soap.Fault `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

func (b *executeSoapReply) Fault() *soap.Fault { return b.Fault_ }

type retrieveExecuterRequest struct {
	XMLName xml.Name                     `xml:"urn:vim25 RetrieveManagedMethodExecuter"`
	This    types.ManagedObjectReference `xml:"_this"`
}

type retrieveExecuterReply struct {
	Req *retrieveExecuterRequest `xml:"urn:vim25 RetrieveManagedMethodExecuter,omitempty"`
	Res *struct {
		Returnval types.ManagedObjectReference `xml:"returnval"`
	} `xml:"RetrieveManagedMethodExecuterResponse"`
	Fault_ *soap.Fault `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

func (b *retrieveExecuterReply) Fault() *soap.Fault { return b.Fault_ }

// row is one struct of an esxcli answer.
type row map[string][]string

func (r row) get(name string) string { return strings.Join(r[name], " ") }

// esxcli runs a command on a host; args are names and values in the declared order. The second result is the error
// text of the command.
func (r *running) esxcli(host, command string, args ...string) ([]row, string) {
	r.t.Helper()
	rows, text, err := r.esxcliErr(host, command, args...)
	r.must(err)
	return rows, text
}

func (r *running) esxcliErr(host, command string, args ...string) ([]row, string, error) {
	r.t.Helper()
	found := retrieveExecuterReply{}
	if err := r.c.RoundTrip(r.ctx,
		&retrieveExecuterReply{Req: &retrieveExecuterRequest{This: r.host(host).Reference()}}, &found); err != nil {
		return nil, "", err
	}
	words := strings.Fields(command)
	req := &executeSoapRequest{This: found.Res.Returnval, Version: "urn:vim25/5.0",
		Method: "vim.EsxCLI." + strings.Join(words, "."),
		Moid:   "ha-cli-handler-" + strings.Join(words[:len(words)-1], "-")}
	for i := 0; i+1 < len(args); i += 2 {
		req.Argument = append(req.Argument, soapArg{args[i], "<" + args[i] + ">" + args[i+1] + "</" + args[i] + ">"})
	}
	reply := executeSoapReply{}
	if err := r.c.RoundTrip(r.ctx, &executeSoapReply{Req: req}, &reply); err != nil {
		return nil, "", err
	}
	if f := reply.Res.Returnval.Fault; f != nil {
		return nil, strings.Join(texts(f.FaultDetail, "errMsg"), " "), nil
	}
	return parseRows(reply.Res.Returnval.Response), "", nil
}

// parseRows reads the structs of an answer, or one struct, or one plain value under "".
func parseRows(text string) []row {
	type element struct {
		XMLName  xml.Name
		Text     string    `xml:",chardata"`
		Children []element `xml:",any"`
	}
	var top element
	if err := xml.Unmarshal([]byte(text), &top); err != nil {
		panic(err)
	}
	flat := func(e element) row {
		out := row{}
		for _, c := range e.Children {
			out[c.XMLName.Local] = append(out[c.XMLName.Local], c.Text)
		}
		return out
	}
	switch {
	case len(top.Children) == 0 && strings.TrimSpace(top.Text) != "":
		return []row{{"": {top.Text}}}
	case len(top.Children) > 0 && top.Children[0].XMLName.Local != "DataObject":
		return []row{flat(top)}
	}
	var out []row
	for _, c := range top.Children {
		out = append(out, flat(c))
	}
	return out
}

func texts(document, name string) []string {
	var out []string
	d := xml.NewDecoder(strings.NewReader(document))
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		if s, ok := t.(xml.StartElement); ok && s.Name.Local == name {
			var text string
			if d.DecodeElement(&text, &s) == nil {
				out = append(out, text)
			}
		}
	}
	return out
}
