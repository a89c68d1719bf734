package runtime

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// forImage puts the programs of an image's version of Kubernetes before those of the cluster's.
func (c Config) forImage(image string) Config {
	_, tag, _ := strings.Cut(path.Base(image), ":")
	folder, err := os.Readlink(filepath.Join(c.Programs, tag))
	if tag == "" || err != nil {
		return c
	}
	program, err := os.Readlink(filepath.Join(c.Lower, folder, "kube-scheduler"))
	if err != nil {
		return c
	}
	c.Path, c.ofImage = append([]string{folder}, c.Path...), []string{folder, program}
	return c
}

// images pretends that every image is there: its content is the machine's root filesystem, its user root.
type images struct {
	cri.UnimplementedImageServiceServer
	filesystem string
}

func (i *images) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	name := request.GetImage().GetImage()
	image := imageOf(1)
	image.Id, image.RepoTags = name, []string{name}
	image.Uid, image.Spec = &cri.Int64Value{Value: 0}, request.GetImage()
	return &cri.ImageStatusResponse{Image: image}, nil
}

func (i *images) PullImage(_ context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	return &cri.PullImageResponse{ImageRef: request.GetImage().GetImage()}, nil
}

func (i *images) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	return &cri.ListImagesResponse{}, nil
}

func (i *images) RemoveImage(context.Context, *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	return &cri.RemoveImageResponse{}, nil
}

func (i *images) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	usage := &cri.FilesystemUsage{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &cri.FilesystemIdentifier{Mountpoint: i.filesystem},
		UsedBytes:  &cri.UInt64Value{},
		InodesUsed: &cri.UInt64Value{},
	}
	filesystems := []*cri.FilesystemUsage{usage}
	return &cri.ImageFsInfoResponse{ImageFilesystems: filesystems, ContainerFilesystems: filesystems}, nil
}
