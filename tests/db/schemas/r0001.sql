-- schema 98edcfcbca8feaa3aafe509849a49ea5abccadd68d8b28cd82a529583dab64fc
INSERT INTO "campaigns" VALUES(1,'shm','12b90044560ad893','{"operation":"allreduce","sizes":[8,1024,1048576],"timing":{"warmup":5}}','{"budget":{"wall_s":60}}','{"version":1,"variables":{"MPIR_CVAR_X":{"kind":"bool"}}}','0123456789abcdef',7,1,1,0,'/home/ann/campaigns/shm',1.79523757007374453551e+09,NULL);
INSERT INTO "configurations" VALUES(1,'2f56221c4994c9da','{"MPIR_CVAR_CH4_SHM_EAGER":"65536","MPIR_CVAR_X":""}');
INSERT INTO "decisions" VALUES(1,1,'{"blocks":5}',1.79523757008993649483e+09);
INSERT INTO "locks" VALUES(1,'node1','boot',1,2,3,1.79523757008125710481e+09,1.79523757008125710481e+09);
INSERT INTO "measurements" VALUES(1,0,'allreduce',8,1.008e-06,9.576e-07,1.008e-06,1.04832e-06,1.0584e-06,7.93650793650793749851e+06,7.93650793650793749851e+06,16,6.0e-08,NULL,0,11,X'789C7BDCD6606AFDB0D1748A75B3E9DBA92DA6AE1F5A4DE779B59B7E5BD261EAFFBFD3744564B729C3961ED348BE3E5300DE631409');
INSERT INTO "measurements" VALUES(1,1,'allreduce',1024,2.024e-06,1.9228e-06,2.024e-06,2.10496e-06,2.1252e-06,5.05928853754940688596e+08,5.05928853754940688596e+08,16,6.0e-08,NULL,0,11,X'789C2BE16434D34965327B7A80D96CAE0CAB5958059B19DF1576B3E3FA9C66F5DD5C6616CFB9CD3E38F19AAD98C76706001AB00D57');
INSERT INTO "measurements" VALUES(1,2,'allreduce',1048576,0.001049576,0.0009970972,0.001049576,0.00109155904,0.0011020548,9.99047234311760187167e+08,9.99047234311760187167e+08,16,6.0e-08,NULL,0,11,X'789CE3D8D8646526D8629552D86A35F1629BD57EC30EABB7133BADA43F75597906F558956FEAB55A2AD46F75B968821500991D12D5');
INSERT INTO "profile_points" VALUES(1,0,0,'allreduce',1024,'fast',2.0e-05,1.5e-05,1.40000000000000013322e+00,1.3,1.5,7,'faster');
INSERT INTO "profile_points" VALUES(1,1,0,'allreduce',1048576,'fast',2.0e-05,1.5e-05,1.70000000000000017763e+00,1.6,1.8,7,'faster');
INSERT INTO "profile_points" VALUES(1,2,0,'allreduce',1048576,'slow',2.0e-05,1.5e-05,1.3,1.2,1.4,7,'faster');
INSERT INTO "profile_points" VALUES(1,3,1,'broadcast',8,'all',2.0e-05,1.5e-05,1.1,1.0,1.2,7,'faster');
INSERT INTO "profiles" VALUES(1,1,'allreduce-large','allreduce','mpi-host',2,1,1024,1048576,1,'faster',0.95,0.02,'steady',0,1.79523757009117269521e+09);
INSERT INTO "runs" VALUES(1,'r1',1,1,1,'search',4,2,'s1','allreduce','{"operation":"allreduce","sizes":[8,1024,1048576],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"}','{"warmup":3,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.125}','stored','ok',1700000000.5,0.75,0,'','',0,'{"library":"MPICH 4.3.0","ranks":[{"rank":0,"cores":[0]}]}','{"sizes":3}');
INSERT INTO "runs" VALUES(2,'r2',1,1,1,'search',4,2,'s1','allreduce','{"operation":"allreduce","sizes":[8,1024,1048576],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"}','{"warmup":3,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.125}','running',NULL,1.79523757008920288079e+09,NULL,NULL,'','',0,NULL,NULL);
INSERT INTO "stacks" VALUES(1,'stack-1','MPICH 4.3.0','{"version":"4.3.0","libraries":["libmpi"]}',1.79523757007261490817e+09);
INSERT INTO "systems" VALUES(1,'sys-1','laptop','{"cpu":{"model":"Xeon","cores":2}}',1.7952375700701539516e+09);
INSERT INTO "trials" VALUES(1,1,1,1,'sampler','large',1.79523757008365798001e+09);
