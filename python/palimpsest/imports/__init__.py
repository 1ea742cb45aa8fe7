"""`palimpsest import`: a drive and a workload of MQSim, FEMU or SimpleSSD as files of ours, one module a simulator."""
