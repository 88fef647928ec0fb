"""The same pod specs by the kubelet, Box and Plain: their statuses agree, or the table says why not."""
