package network

import "fmt"

// Counters are bytes a device has sent and received.
type Counters struct {
	TxBytes int64 `json:"tx_bytes"`
	RxBytes int64 `json:"rx_bytes"`
}

// Traffic is traffic by device: RDMA devices and NICs count apart, as they do on a host.
type Traffic struct {
	RDMA map[string]Counters `json:"rdma"`
	NIC  map[string]Counters `json:"nic"`
}

// packetBytes turns bytes into packets for the counters that count those.
const packetBytes = 4096

// Grow adds traffic to the counters of NICs and RDMA devices; the control interface sets it.
func (s *System) Grow(t Traffic) error {
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

// trafficNow is a copy of the counters.
func (s *System) trafficNow() Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traffic
}
