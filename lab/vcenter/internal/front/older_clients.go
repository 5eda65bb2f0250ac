package front

import "regexp"

var (
	speaks8 = regexp.MustCompile(`urn:vim25/[78]\.`)
	// All properties of 9.0 and 9.1 that the simulator sends.
	newer = regexp.MustCompile(`<directPathProfileManager [^>]*>[^<]*</directPathProfileManager>` +
		`|(?s:<directPathState>.*?</directPathState>)` +
		`|(</instanceId><vm [^>]*>[^<]*</vm>)<pciId>[^<]*</pciId>`)
)

// forVersion returns an answer of vSphere 9 without the properties that the version of its client does not have.
// VMware: the type tables of pyVmomi 9.1: since which version each property exists. pyVmomi 8.0 raises AttributeError
// for others, so that an answer of a real vCenter cannot have them.
func forVersion(action string, answered []byte) []byte {
	if !speaks8.MatchString(action) {
		return answered
	}
	return newer.ReplaceAll(answered, []byte("$1"))
}
