// Package esxcli simulates the execution of esxcli commands over the API.
//
// vcsim: a handful of read-only commands, which this simulator uses for commands that it does not have.
package esxcli

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/vcsim"

	cli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// Command is one esxcli command: its parameters in the declared order, and its action.
type Command struct {
	Params []string
	Run    Action
	Deaf   Action // the answer of a deaf host; nil: "true"
	XML    bool   // the answer is ready-made XML, for structs within structs
}

type Action func(ctx *simulator.Context, args cli.Values) (*cli.Response, *Error)

// answer runs the command; a deaf host answers and does nothing.
func (c Command) answer(ctx *simulator.Context, args cli.Values, deaf bool) (*cli.Response, *Error) {
	switch {
	case !deaf:
		return c.Run(ctx, args)
	case c.Deaf != nil:
		return c.Deaf(ctx, args)
	}
	return Success(), nil
}

// Error contains the lines that esxcli prints when a command fails.
type Error struct{ Lines []string }

// Errorf returns an error with one line.
func Errorf(format string, args ...any) *Error {
	return &Error{Lines: []string{fmt.Sprintf(format, args...)}}
}

// Rows returns an answer with many structs of one kind.
func Rows(kind string, values ...cli.Values) *cli.Response {
	return &cli.Response{Kind: kind, Values: values}
}

// Success returns the answer of commands that return no data.
func Success() *cli.Response { return &cli.Response{Kind: "boolean", String: "true"} }

// Record returns one struct of an answer, from alternating names and values.
func Record(pairs ...string) cli.Values {
	v := cli.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v[pairs[i]] = []string{pairs[i+1]}
	}
	return v
}

// Executer runs esxcli commands on one host.
type Executer struct {
	mo.View  // vcsim expects a managed object within every registered object
	host     *host.Host
	commands map[string]Command
}

// New registers the executer of a host; it answers no command yet.
func New(ctx *simulator.Context, h *host.Host) *Executer {
	e := &Executer{View: mo.View{Self: executerRef(h)}, host: h, commands: map[string]Command{}}
	h.Manager(ctx, e)
	return e
}

// executerRef returns the reference of a host's executer.
// VMware: the names that clients of esxcli read from vCenters; vcsim uses ManagedMethodExecuter.
func executerRef(h *host.Host) vcsim.Ref {
	return h.ManagerRef("ReflectManagedMethodExecuter", "ManagedMethodExecuter")
}

// Add adds commands to the executer, by their dotted names.
func (e *Executer) Add(commands map[string]Command) { maps.Copy(e.commands, commands) }

// ExecuteSoap runs one esxcli command. Its request has a type internal to govmomi, so it is read by reflection.
// VMware: govmomi, cli/esx/executor.go: names, versions and XML of the call, as govc and PowerCLI use it. Faults are
// EsxCLI.CLIFault.summary with the printed lines.
func (e *Executer) ExecuteSoap(ctx *simulator.Context, req any) soap.HasFault {
	v := reflect.ValueOf(req).Elem()
	name, deaf := strings.CutPrefix(v.FieldByName("Method").String(), "deaf.EsxCLI.")
	name = strings.TrimPrefix(name, "vim.EsxCLI.")
	cmd, known := e.commands[name]
	if f := e.host.Unreachable(ctx); f != nil {
		return &executeSoapBody{Fault_: f}
	}
	if !known {
		return e.forward(ctx, req)
	}
	args, bad := arguments(cmd, v.FieldByName("Argument"))
	if bad != nil {
		return &executeSoapBody{Fault_: vcsim.SoapFault(bad)}
	}
	res, failed := cmd.answer(ctx, args, deaf)
	out := new(soapResult)
	if failed != nil {
		out.Fault = &soapResultFault{FaultMsg: "EsxCLI.CLIFault.summary", FaultDetail: failed.xml()}
	} else if cmd.XML && !deaf {
		out.Response = res.String
	} else {
		out.Response = responseXML(name, res)
	}
	return &executeSoapBody{Res: &executeSoapResponse{Returnval: out}}
}

// arguments unpacks the arguments of a command and refuses them unless they are in the declared order.
// VMware: an ESXi returns "A specified parameter was not correct: argument[N]" for an argument out of order.
func arguments(cmd Command, list reflect.Value) (cli.Values, vcsim.Fault) {
	args, last := cli.Values{}, -1
	for i := range list.Len() {
		name := list.Index(i).FieldByName("Name").String()
		place := slices.Index(cmd.Params, name)
		if place <= last {
			return nil, &types.InvalidArgument{InvalidProperty: fmt.Sprintf("argument[%d]", i)}
		}
		last = place
		args[name] = snippets(list.Index(i).FieldByName("Val").String())
	}
	return args, nil
}

// snippets returns the texts of "<a>x</a><a>y</a>".
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

// forward lets vcsim answer a command that is not simulated here.
// Ours: vcsim has a handful of read-only commands and returns NotFound for all others.
func (e *Executer) forward(ctx *simulator.Context, req any) soap.HasFault {
	retrieve := reflect.ValueOf(e.host.Entity).MethodByName("RetrieveManagedMethodExecuter")
	ctx.WithLock(e.host.Entity, func() {
		retrieve.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(retrieve.Type().In(1).Elem())})
	})
	stock := e.host.Sim.Registry.Get(vcsim.Ref{Type: "ManagedMethodExecuter", Value: e.host.Self.Value})
	run := reflect.ValueOf(stock).MethodByName("ExecuteSoap")
	return run.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(req)})[0].Interface().(soap.HasFault)
}

// Types returns the answer to RetrieveDynamicTypeManager: the object that describes the types and commands of the
// host.
// VMware: govmomi, internal/types.go: InternalDynamicTypeManager; vcsim uses DynamicTypeManager.
func Types(ctx *simulator.Context, h *host.Host) soap.HasFault {
	manager := &simulator.DynamicTypeManager{
		ManagedObjectReference: h.ManagerRef("InternalDynamicTypeManager", "DynamicTypeManager")}
	if h.Sim.Registry.Get(manager.Reference()) == nil {
		h.Manager(ctx, manager)
	}
	return &retrieveTypesBody{Res: &retrieveExecuterResponse{Returnval: manager.Reference()}}
}

// Retrieved returns the answer to RetrieveManagedMethodExecuter: the executer of the host.
// VMware: govmomi, cli/esx/executor.go: each host has an executer.
func Retrieved(h *host.Host) soap.HasFault {
	return &retrieveExecuterBody{Res: &retrieveExecuterResponse{Returnval: executerRef(h)}}
}

func (e *Error) xml() string {
	var b strings.Builder
	b.WriteString(
		`<obj xmlns="urn:vim25" xmlns:xsd="http://www.w3.org/2001/XMLSchema" ` +
			`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="LocalizedMethodFault">` +
			`<fault xsi:type="VimEsxCLICLIFault">`)
	for _, l := range e.Lines {
		b.WriteString("<errMsg>")
		_ = xml.EscapeText(&b, []byte(l)) // a strings.Builder does not fail
		b.WriteString("</errMsg>")
	}
	b.WriteString(`</fault><localizedMessage>EsxCLI.CLIFault.summary</localizedMessage></obj>`)
	return b.String()
}

func responseXML(name string, res *cli.Response) string {
	if res.String == "" {
		prefix := "VimEsxCLI"
		for _, part := range strings.Split(name, ".") {
			prefix += vcsim.Capital(part)
		}
		res.Kind = prefix + res.Kind
	}
	var b strings.Builder
	if err := xml.NewEncoder(&b).Encode(res); err != nil {
		panic(err) // encoding strings in maps cannot fail
	}
	return b.String()
}

// Bool returns a boolean in the format of most commands.
func Bool(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
