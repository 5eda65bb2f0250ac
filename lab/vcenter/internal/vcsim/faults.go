package vcsim

import (
	"cmp"
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Fault is a fault of the vSphere API.
type Fault = types.BaseMethodFault

// SoapFault returns a fault with its message for SOAP.
func SoapFault(f Fault) *soap.Fault { return simulator.Fault(message(f), f) }

// Localized returns a fault with its message for tasks.
func Localized(fault Fault) types.LocalizedMethodFault {
	return types.LocalizedMethodFault{Fault: fault, LocalizedMessage: message(fault)}
}

// message returns the text of a fault: a vCenter's text if known, or else the name of the fault.
// Ours: the texts are from public logs of vCenters; the list is short.
func message(fault Fault) string {
	if cause := fault.GetMethodFault().FaultCause; cause != nil && cause.LocalizedMessage != "" {
		return cause.LocalizedMessage
	}
	switch f := fault.(type) {
	case *types.InvalidArgument:
		return "A specified parameter was not correct: " + f.InvalidProperty
	case *types.InvalidName:
		return "The name '" + f.Name + "' is invalid."
	case *types.InvalidPowerState:
		now := powerWords[f.ExistingState]
		return "The attempted operation cannot be performed in the current state (" + now + ")."
	}
	name := reflect.TypeOf(fault).Elem().Name()
	return cmp.Or(faultWords[name], name)
}

var powerWords = map[types.VirtualMachinePowerState]string{
	types.VirtualMachinePowerStatePoweredOn: "Powered on", types.VirtualMachinePowerStatePoweredOff: "Powered off",
	types.VirtualMachinePowerStateSuspended: "Suspended",
}

// faultWords are the messages of a vCenter for faults without properties.
var faultWords = map[string]string{
	"HostNotConnected": "Unable to communicate with the remote host, since it is disconnected.",
	"InsufficientGraphicsResourcesFault": "The amount of graphics resource available in the parent resource pool " +
		"is insufficient for the operation.",
	"InvalidHostState": "The operation is not allowed in the current connection state of the host.",
	"InvalidState":     "The operation is not allowed in the current state.",
	"NotFound":         "The object or item referred to could not be found.",
	"RequestCanceled":  "The task was canceled by a user.",
	"TaskInProgress":   "Another task is already in progress.",
	"Timedout":         "Operation timed out.",
}
