package pki

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Login is what a kubeconfig needs besides the authority: a client certificate or a bearer token.
type Login struct {
	Server string
	User   string
	Client Pair
	Token  string
}

// WriteKubeconfig writes a self-contained kubeconfig, readable by its owner only.
func (a *Authority) WriteKubeconfig(path string, login Login) error {
	config := api.NewConfig()
	config.Clusters["local"] = &api.Cluster{Server: login.Server, CertificateAuthorityData: a.Certificate}
	config.AuthInfos[login.User] = &api.AuthInfo{
		ClientCertificateData: login.Client.Certificate, ClientKeyData: login.Client.Key, Token: login.Token,
	}
	config.Contexts["local"] = &api.Context{Cluster: "local", AuthInfo: login.User}
	config.CurrentContext = "local"
	return clientcmd.WriteToFile(*config, path)
}

// Write puts the pair into NAME.crt and NAME.key of a folder.
func (p Pair) Write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), p.Certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".key"), p.Key, 0o600)
}
