package front

import "bytes"

// The types of distributed switches: that of vcsim, which asserts it in many places, and that of a vCenter.
// VMware: ManageIQ, spec/tools/vim_data/miq_vim_inventory/dvSwitchesByMor.yml: VmwareDistributedVirtualSwitch.
const (
	switchOfVcsim   = "DistributedVirtualSwitch"
	switchOfVcenter = "VmwareDistributedVirtualSwitch"
)

// inbound is a call in the words of vcsim: references to switches, and the type where a client asks for switches.
func inbound(body []byte) []byte {
	for _, around := range [][2]string{{`type="`, `"`}, {">", "<"}} {
		body = bytes.ReplaceAll(body, []byte(around[0]+switchOfVcenter+around[1]),
			[]byte(around[0]+switchOfVcsim+around[1]))
	}
	return body
}

// outbound is an answer in which references to switches have the type of a vCenter.
func outbound(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`type="`+switchOfVcsim+`"`), []byte(`type="`+switchOfVcenter+`"`))
}
