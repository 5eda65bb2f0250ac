// Command vcenter is a simulated vCenter with GPU hosts, an extension of VMware's simulator.
package main

import (
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	o, withStdin := parse()
	l, err := startLab(o)
	if err != nil {
		log.Fatal(err)
	}
	if o.ready != "" {
		if err := l.writeReady(o.ready); err != nil {
			l.stop()
			log.Fatal(err)
		}
	}
	log.Printf("vSphere API https://%s:%d  control %s", l.Ready.Hostname, l.Ready.Port, l.Ready.Control)
	if err := l.wait(withStdin); err != nil {
		log.Print(err)
	}
	l.stop()
	if o.ready != "" {
		_ = os.Remove(o.ready) // it may already be removed
	}
}

func parse() (options, bool) {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "address of the vSphere API (TLS)")
	flag.StringVar(&o.control, "control", "127.0.0.1:0",
		"address of the control interface (plain HTTP, loopback only)")
	flag.StringVar(&o.datacentre, "datacentre", "", "YAML file that describes the data centre (required)")
	flag.StringVar(&o.username, "username", "administrator@vsphere.local", "name of the only account")
	flag.StringVar(&o.password, "password", "", "its password (required)")
	flag.StringVar(&o.certs, "certs", "certs", "directory of the certificates; created if absent")
	flag.StringVar(&o.cert, "cert", "", "certificate to use instead of --certs (PEM)")
	flag.StringVar(&o.key, "key", "", "key of --cert (PEM)")
	flag.StringVar(&o.ca, "ca", "", "CA of --cert for the ready file (default: --cert itself)")
	flag.StringVar(&o.release, "release", "", "release of vSphere, such as 8.0 U2, instead of the description's")
	flag.StringVar(&o.encryption, "encryption", "", "on or off: encryption of moves, instead of the description's")
	flag.IntVar(&o.hostsOut, "hosts-out", 0, "hosts of a cluster that may be out of service at once, before "+
		"/violations shows it, instead of the description's")
	delay := flag.Int("delay", 0, "additional milliseconds for every SOAP call")
	flag.StringVar(&o.ready, "ready", "", "JSON file that is written after the start and removed at the end")
	withStdin := flag.Bool("exit-with-stdin", false, "stop when standard input ends, as it does when the parent dies")
	flag.Parse()
	if o.datacentre == "" || o.password == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	o.delay = time.Duration(*delay) * time.Millisecond
	return o, *withStdin
}

// wait returns at a signal or, with withStdin, at the end of standard input.
func (l *lab) wait(withStdin bool) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	orphaned := make(chan struct{})
	if withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // an error also counts as the end of the input
			close(orphaned)
		}()
	}
	select {
	case <-signals:
	case <-orphaned:
	case err := <-l.stopped:
		if !errors.Is(err, http.ErrServerClosed) {
			return err
		}
	}
	return nil
}
