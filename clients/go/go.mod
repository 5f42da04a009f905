module berth.example/hold

go 1.19
