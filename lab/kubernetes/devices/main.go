// Command devices is a kubelet device plugin for simulated devices: requests of pods, allocations by the scheduler and
// the environment of containers are real, the devices are not.
//
//	devices -resource nvidia.com/gpu -count 1 -prefix GPU-lab -env NVIDIA_VISIBLE_DEVICES \
//	  -device /dev/null=/dev/nvidia0
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const look = time.Second

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource, prefix, env, device, sick string
	count                               int
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// devices returns all devices; those with a line in the file from -sick are unhealthy.
func (p *plugin) devices() []*api.Device {
	sick, _ := os.ReadFile(p.sick) // if the file does not exist, all devices are healthy
	all := make([]*api.Device, p.count)
	for i := range all {
		id, health := fmt.Sprintf("%s-%d", p.prefix, i), api.Healthy
		if slices.Contains(strings.Fields(string(sick)), id) {
			health = api.Unhealthy
		}
		all[i] = &api.Device{ID: id, Health: health}
	}
	return all
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	sent := "nothing"
	for stream.Context().Err() == nil {
		now := p.devices()
		if text := fmt.Sprint(now); text != sent {
			if err := stream.Send(&api.ListAndWatchResponse{Devices: now}); err != nil {
				return err
			}
			sent = text
		}
		time.Sleep(look)
	}
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, request := range asked.ContainerRequests {
		log.Printf("%s: allocated %v", p.resource, request.DevicesIds)
		given := &api.ContainerAllocateResponse{}
		if p.env != "" {
			given.Envs = map[string]string{p.env: strings.Join(request.DevicesIds, ",")}
		}
		if here, there, found := strings.Cut(p.device, "="); found {
			given.Devices = []*api.DeviceSpec{{HostPath: here, ContainerPath: there, Permissions: "rw"}}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

// serve serves until kubelet restarts, which removes all plugin sockets.
func (p *plugin) serve(folder string) error {
	name := strings.NewReplacer("/", "_", ".", "_").Replace(p.resource) + ".sock"
	path := filepath.Join(folder, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { log.Printf("%s: %v", p.resource, server.Serve(listener)) }()
	defer server.Stop()
	if err := p.register(filepath.Join(folder, "kubelet.sock"), name); err != nil {
		return err
	}
	log.Printf("%s: registered %d", p.resource, p.count)
	for err == nil {
		time.Sleep(look)
		_, err = os.Stat(path)
	}
	return fmt.Errorf("kubelet has restarted: %w", err)
}

func (p *plugin) register(socket, name string) error {
	kubelet, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: name, ResourceName: p.resource}
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, request)
	return err
}

func main() {
	p := &plugin{}
	folder := flag.String("folder", api.DevicePluginPath, "folder of kubelet's plugin sockets")
	flag.StringVar(&p.resource, "resource", "nvidia.com/gpu", "resource that pods request")
	flag.IntVar(&p.count, "count", 1, "number of devices")
	flag.StringVar(&p.prefix, "prefix", "GPU", "prefix of the device names")
	flag.StringVar(&p.env, "env", "", "environment variable with the names of a container's devices")
	flag.StringVar(&p.device, "device", "", "HERE=THERE: device file on the machine, and its path in the container")
	flag.StringVar(&p.sick, "sick", "/run/sick-devices", "file with the names of unhealthy devices")
	flag.Parse()
	for {
		log.Printf("%s: %v", p.resource, p.serve(*folder))
		time.Sleep(look)
	}
}
