package vcenter

import "strings"

var (
	plainNames   = strings.NewReplacer("%25", "%", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`)
	escapedNames = strings.NewReplacer("%", "%25", "/", "%2f", `\`, "%5c")
)

// escapedName returns a name of an object in the form that vCenter stores and returns.
//
// VMware: vSphere API reference, ManagedEntity.name and Folder.CreateFolder: slash, backslash and percent are
// escaped, except a percent that starts such an escape. vCenter 7.0 U3 returns `with%2fslash` (govmomi issue 2717).
func escapedName(name string) string { return escapedNames.Replace(plainNames.Replace(name)) }
