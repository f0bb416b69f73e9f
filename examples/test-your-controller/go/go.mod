module example.com/test-your-controller

go 1.22
