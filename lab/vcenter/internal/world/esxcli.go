package world

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// command is one esxcli command: its parameters in the declared order and what it does.
type command struct {
	params []string
	run    action
	deaf   action // what a host answers that then does nothing; nil: "true"
	xml    bool   // the answer is XML as it is, for structs within structs
}

type action func(ctx *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError)

// answer runs the command; a deaf host gives the answer and does nothing.
func (c command) answer(ctx *simulator.Context, args esxcli.Values, deaf bool) (*esxcli.Response, *cliError) {
	switch {
	case !deaf:
		return c.run(ctx, args)
	case c.deaf != nil:
		return c.deaf(ctx, args)
	}
	return yes(), nil
}

// cliError is what esxcli prints when a command fails.
type cliError struct{ lines []string }

func cliErrorf(format string, args ...any) *cliError {
	return &cliError{lines: []string{fmt.Sprintf(format, args...)}}
}

// rows is an answer of many structs of one kind.
func rows(kind string, values ...esxcli.Values) *esxcli.Response {
	return &esxcli.Response{Kind: kind, Values: values}
}

// yes is the answer of commands that only succeed.
func yes() *esxcli.Response { return &esxcli.Response{Kind: "boolean", String: "true"} }

// record builds one struct of an answer from names and values in turn.
func record(pairs ...string) esxcli.Values {
	v := esxcli.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v[pairs[i]] = []string{pairs[i+1]}
	}
	return v
}

// executer runs esxcli commands on one host.
type executer struct {
	mo.View  // vcsim asks every object for a managed object within it, FindByUuid among others; the plainest will do
	host     *Host
	commands map[string]command
}

// newExecuter registers the executer of a host; it answers no command yet.
func newExecuter(ctx *simulator.Context, h *Host) *executer {
	e := &executer{View: mo.View{Self: executerRef(h)}, host: h, commands: map[string]command{}}
	h.manager(ctx, e)
	return e
}

// executerRef is the reference of a host's executer.
func executerRef(h *Host) ref { return h.managerRef("ManagedMethodExecuter", "ManagedMethodExecuter") }

// add lets the executer answer commands, by their dotted names.
func (e *executer) add(commands map[string]command) { maps.Copy(e.commands, commands) }

// ExecuteSoap runs one command. Its request is a type internal to govmomi and is read by reflection.
func (e *executer) ExecuteSoap(ctx *simulator.Context, req any) soap.HasFault {
	v := reflect.ValueOf(req).Elem()
	name, deaf := strings.CutPrefix(v.FieldByName("Method").String(), "deaf.EsxCLI.")
	name = strings.TrimPrefix(name, "vim.EsxCLI.")
	cmd, ours := e.commands[name]
	if f := e.host.unreachable(ctx); f != nil {
		return &executeSoapBody{Fault_: f}
	}
	if !ours {
		return e.stock(ctx, req)
	}
	args, bad := arguments(cmd, v.FieldByName("Argument"))
	if bad != nil {
		return &executeSoapBody{Fault_: soapFault(bad)}
	}
	res, failed := cmd.answer(ctx, args, deaf)
	out := new(soapResult)
	if failed != nil {
		out.Fault = &soapResultFault{FaultMsg: "EsxCLI.CLIFault.summary", FaultDetail: failed.xml()}
	} else if cmd.xml && !deaf {
		out.Response = res.String
	} else {
		out.Response = responseXML(name, res)
	}
	return &executeSoapBody{Res: &executeSoapResponse{Returnval: out}}
}

// arguments checks the order the command declares, as ESXi does, and unpacks the XML snippets.
func arguments(cmd command, list reflect.Value) (esxcli.Values, types.BaseMethodFault) {
	args, last := esxcli.Values{}, -1
	for i := range list.Len() {
		name := list.Index(i).FieldByName("Name").String()
		place := slices.Index(cmd.params, name)
		if place <= last {
			return nil, &types.InvalidArgument{InvalidProperty: fmt.Sprintf("argument[%d]", i)}
		}
		last = place
		args[name] = snippets(list.Index(i).FieldByName("Val").String())
	}
	return args, nil
}

// snippets are the texts of "<a>x</a><a>y</a>".
func snippets(text string) []string {
	var out []string
	d := xml.NewDecoder(strings.NewReader(text))
	for t, err := d.Token(); err == nil; t, err = d.Token() {
		switch x := t.(type) {
		case xml.StartElement:
			out = append(out, "")
		case xml.CharData:
			if len(out) > 0 {
				out[len(out)-1] += string(x)
			}
		}
	}
	return out
}

// stock lets vcsim's own executer answer what we do not.
func (e *executer) stock(ctx *simulator.Context, req any) soap.HasFault {
	retrieve := reflect.ValueOf(e.host.entity).MethodByName("RetrieveManagedMethodExecuter")
	ctx.WithLock(e.host.entity, func() {
		retrieve.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(retrieve.Type().In(1).Elem())})
	})
	stock := e.host.sim.reg.Get(ref{Type: "ManagedMethodExecuter", Value: e.host.self.Value})
	run := reflect.ValueOf(stock).MethodByName("ExecuteSoap")
	return run.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req)})[0].Interface().(soap.HasFault)
}

// retrieved is the answer to RetrieveManagedMethodExecuter: the host's own executer.
func retrieved(h *Host) soap.HasFault {
	return &retrieveExecuterBody{Res: &retrieveExecuterResponse{Returnval: executerRef(h)}}
}

func (e *cliError) xml() string {
	var b strings.Builder
	b.WriteString(`<obj xmlns="urn:vim25" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="LocalizedMethodFault"><fault xsi:type="VimEsxCLICLIFault">`)
	for _, l := range e.lines {
		b.WriteString("<errMsg>")
		_ = xml.EscapeText(&b, []byte(l)) // a strings.Builder does not fail
		b.WriteString("</errMsg>")
	}
	b.WriteString(`</fault><localizedMessage>EsxCLI.CLIFault.summary</localizedMessage></obj>`)
	return b.String()
}

func responseXML(name string, res *esxcli.Response) string {
	if res.String == "" {
		prefix := "VimEsxCLI"
		for _, part := range strings.Split(name, ".") {
			prefix += capital(part)
		}
		res.Kind = prefix + res.Kind
	}
	var b strings.Builder
	if err := xml.NewEncoder(&b).Encode(res); err != nil {
		panic(err) // strings in maps always encode
	}
	return b.String()
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
