package network

import "fmt"

// Counters are the bytes that a device has sent and received.
type Counters struct {
	TxBytes int64 `json:"tx_bytes"`
	RxBytes int64 `json:"rx_bytes"`
}

// Traffic is the traffic by device; RDMA devices and NICs have separate counters.
type Traffic struct {
	RDMA map[string]Counters `json:"rdma"`
	NIC  map[string]Counters `json:"nic"`
}

// packetBytes is the assumed size of a packet for packet counters.
const packetBytes = 4096

// AddTraffic adds traffic from the control interface to the counters of NICs and RDMA devices.
func (s *System) AddTraffic(t Traffic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	for _, n := range s.host.Hardware.NICs {
		known["nic/"+n.Device], known["rdma/"+n.RDMA] = true, n.RDMA != ""
	}
	for device := range t.RDMA {
		if !known["rdma/"+device] {
			return fmt.Errorf("host %s has no RDMA device %q", s.host.Spec.Name, device)
		}
	}
	for device := range t.NIC {
		if !known["nic/"+device] {
			return fmt.Errorf("host %s has no NIC %q", s.host.Spec.Name, device)
		}
	}
	s.traffic.RDMA = sum(s.traffic.RDMA, t.RDMA)
	s.traffic.NIC = sum(s.traffic.NIC, t.NIC)
	return nil
}

func sum(a, b map[string]Counters) map[string]Counters {
	out := map[string]Counters{}
	for device, c := range a {
		out[device] = c
	}
	for device, c := range b {
		out[device] = Counters{TxBytes: out[device].TxBytes + c.TxBytes, RxBytes: out[device].RxBytes + c.RxBytes}
	}
	return out
}

// currentTraffic returns a copy of the counters.
func (s *System) currentTraffic() Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traffic
}
