package runtime

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// images pretends that every image is there: its content is the machine's root filesystem, its user root.
type images struct {
	cri.UnimplementedImageServiceServer
	filesystem string
}

func (i *images) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	name := request.GetImage().GetImage()
	return &cri.ImageStatusResponse{Image: &cri.Image{
		Id:       name,
		RepoTags: []string{name},
		Size:     1,
		Uid:      &cri.Int64Value{Value: 0},
		Spec:     request.GetImage(),
	}}, nil
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
