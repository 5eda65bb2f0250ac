package front

import "bytes"

// The types of distributed switches: the type in vcsim, which asserts it in many places, and the type in a vCenter.
// VMware: ManageIQ, spec/tools/vim_data/miq_vim_inventory/dvSwitchesByMor.yml: VmwareDistributedVirtualSwitch.
const (
	switchOfVcsim   = "DistributedVirtualSwitch"
	switchOfVcenter = "VmwareDistributedVirtualSwitch"
)

// inbound returns a call with the type of vcsim in references to switches and in requests for switches.
func inbound(body []byte) []byte {
	for _, around := range [][2]string{{`type="`, `"`}, {">", "<"}} {
		body = bytes.ReplaceAll(body, []byte(around[0]+switchOfVcenter+around[1]),
			[]byte(around[0]+switchOfVcsim+around[1]))
	}
	return body
}

// outbound returns an answer in which references to switches have the type of a vCenter.
func outbound(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`type="`+switchOfVcsim+`"`), []byte(`type="`+switchOfVcenter+`"`))
}
