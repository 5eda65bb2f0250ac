package front

import "strings"

// readPrefixes are the prefixes of methods that read.
var readPrefixes = []string{
	"Retrieve", "Query", "Fetch", "Find", "Get", "List", "Check", "Wait", "Continue", "Validate",
	"Estimate", "Recommend", "Has", "Is",
	"Login", "Logout", "Read", "Rewind", "Search", "Browse", "Compute", "Place", "Export", "Refresh", "Scan",
}

// reads are further methods that do not write: sessions, views, filters, collectors.
var reads = map[string]bool{
	"CurrentTime": true, "SessionIsActive": true, "AcquireCloneTicket": true, "CloneSession": true,
	"AcquireGenericServiceTicket": true,
	"CreateContainerView":         true, "CreateListView": true, "CreateInventoryView": true, "ModifyListView": true,
	"ResetListView":         true,
	"ResetListViewFromView": true, "DestroyView": true,
	"OpenInventoryViewFolder": true, "CloseInventoryViewFolder": true,
	"CreateFilter": true, "DestroyPropertyFilter": true,
	"CreatePropertyCollector": true, "DestroyPropertyCollector": true,
	"CancelWaitForUpdates": true, "CancelRetrievePropertiesEx": true,
	"CreateCollectorForEvents": true, "CreateCollectorForTasks": true,
	"DestroyCollector": true, "SetCollectorPageSize": true,
	"ResetCollector": true, "DynamicTypeMgrQueryTypeInfo": true,
	"DynamicTypeMgrQueryMoInstances": true, "HostImageConfigGetAcceptance": true,
	"HostImageConfigGetProfile": true, "installDate": true,
	"DirectPathProfileManagerQueryCapacity": true, "DirectPathProfileManagerList": true,
}

// esxcliWrites are the last words of esxcli commands that change the host.
var esxcliWrites = map[string]bool{
	"set": true, "add": true, "remove": true, "install": true, "update": true, "apply": true,
	"enable": true, "disable": true, "load": true,
	"unload": true, "create": true, "delete": true, "kill": true, "reboot": true, "shutdown": true,
	"poweroff": true, "reset": true,
	"restore": true, "import": true, "mount": true, "unmount": true, "up": true, "down": true, "signature": true,
}

// writes reports whether a call may change state: every method that is not known to read.
func (c Call) writes() bool {
	if words := strings.Fields(c.Method); len(words) > 1 && words[0] == "esxcli" {
		return esxcliWrites[words[len(words)-1]] && !c.DryRun
	}
	if reads[c.Method] {
		return false
	}
	for _, p := range readPrefixes {
		if strings.HasPrefix(c.Method, p) {
			return false
		}
	}
	return true
}
