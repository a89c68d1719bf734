package node

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// shutdownGrace is how long a container may take after SIGTERM when its machine is shut down: as long as
// Kubernetes grants a pod by default.
const shutdownGrace = 30 * time.Second

// stopContainers ends all containers in good order, as an operating system does with its services. The kubelet
// must have ended before, or it would start them again.
func stopContainers(ctx context.Context) error {
	connection, err := grpc.NewClient("unix://"+criSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := cri.NewRuntimeServiceClient(connection)
	listed, err := client.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return err
	}
	var stopping sync.WaitGroup
	for _, container := range listed.Containers {
		stopping.Go(func() {
			request := &cri.StopContainerRequest{ContainerId: container.Id, Timeout: int64(shutdownGrace.Seconds())}
			if _, err := client.StopContainer(ctx, request); err != nil {
				fmt.Fprintf(os.Stderr, "stop container %s: %v\n", container.Metadata.Name, err)
			}
		})
	}
	stopping.Wait()
	return nil
}
