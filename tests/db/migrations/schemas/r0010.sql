BEGIN TRANSACTION;
CREATE TABLE blocks (
	campaign_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	phase VARCHAR(32) NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	configurations JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_blocks PRIMARY KEY (campaign_id, number), 
	CONSTRAINT fk_blocks_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "blocks" VALUES(1,4,'confirm','allreduce','[{"OTHER":"1"},{},{"MPIR_CVAR_CH4_SHM_EAGER":"65536","MPIR_CVAR_X":""}]',1.7959062638513131142e+09);
CREATE TABLE campaigns (
	id INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	content_key VARCHAR(64) NOT NULL, 
	what JSON NOT NULL, 
	settings JSON NOT NULL, 
	space JSON NOT NULL, 
	space_key VARCHAR(64) NOT NULL, 
	seed BIGINT NOT NULL, 
	system_id INTEGER NOT NULL, 
	stack_id INTEGER NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	folder TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	finished DOUBLE, 
	site TEXT NOT NULL, 
	CONSTRAINT pk_campaigns PRIMARY KEY (id), 
	CONSTRAINT uq_campaigns_name UNIQUE (name), 
	CONSTRAINT fk_campaigns_system_id_systems FOREIGN KEY(system_id) REFERENCES systems (id), 
	CONSTRAINT fk_campaigns_stack_id_stacks FOREIGN KEY(stack_id) REFERENCES stacks (id)
);
INSERT INTO "campaigns" VALUES(1,'shm','12b90044560ad893','{"operation":"allreduce","sizes":[8,1024,1048576],"timing":{"warmup":5}}','{"budget":{"wall_s":60}}','{"version":1,"variables":{"MPIR_CVAR_X":{"kind":"bool"}}}','0123456789abcdef',7,1,1,0,'/home/ann/campaigns/shm',1.79590626374406576158e+09,NULL,'');
CREATE TABLE commtune_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT commtune_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "commtune_schema" VALUES('r0010');
CREATE TABLE conclusions (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	conclusion JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_conclusions PRIMARY KEY (id), 
	CONSTRAINT fk_conclusions_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "conclusions" VALUES(1,1,'{"version":1,"replayed":"","method":{"level":null,"minimum_gain":null,"tolerance":null,"looks":0,"confirmations":1,"interval":""},"budget":{},"spent":{},"noise":[],"confirmed":[],"ablations":[],"answers":{"one":null,"ranges":[],"trade_off":{"weighted":false,"one_mean_gain":null,"ranges_mean_gain":null,"lost_by_one":{}}},"detectable":{},"more":null,"not_followed":[],"set_aside":[]}',1.79590626386302495e+09);
CREATE TABLE configurations (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	environment JSON NOT NULL, 
	CONSTRAINT pk_configurations PRIMARY KEY (id), 
	CONSTRAINT uq_configurations_key UNIQUE ("key")
);
INSERT INTO "configurations" VALUES(1,'2f56221c4994c9da','{"MPIR_CVAR_CH4_SHM_EAGER":"65536","MPIR_CVAR_X":""}');
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	decision JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT fk_decisions_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "decisions" VALUES(1,1,'{"candidates":[],"blocks":5,"first_block":0,"budget_s":0.0,"looks":[],"number":0,"error_share":1.0,"budget":{},"ablations":[],"sizes":[],"look_shares":[0.15,0.25,0.6],"session_spread":0.2}',1.79590626384977769848e+09);
CREATE TABLE executions (
	campaign_id INTEGER NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	followed VARCHAR(32) NOT NULL, 
	fingerprints JSON NOT NULL, 
	said JSON NOT NULL, 
	why TEXT NOT NULL, 
	became VARCHAR(64), 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_executions PRIMARY KEY (campaign_id, configuration_id, operation), 
	CONSTRAINT fk_executions_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_executions_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);
INSERT INTO "executions" VALUES(1,1,'allreduce','executed','{"8":"aa01","1048576":"bb02"}','["algorithm: ring",""]','',NULL,1.7959062638527524471e+09);
CREATE TABLE jobs (
	"key" VARCHAR(255) NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	stage VARCHAR(16) NOT NULL, 
	block INTEGER, 
	number VARCHAR(64) NOT NULL, 
	folder TEXT NOT NULL, 
	word TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	nodes TEXT NOT NULL, 
	node_count INTEGER NOT NULL, 
	prepared_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, 
	node_hours DOUBLE NOT NULL, 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_jobs PRIMARY KEY ("key"), 
	CONSTRAINT fk_jobs_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "jobs" VALUES('over',1,'block','over',4,'','/home/ann/campaigns/shm/jobs/over','','','',2,1700000000.25,NULL,NULL,0.5,'');
INSERT INTO "jobs" VALUES('shm-0004',1,'block','prepared',4,'','/home/ann/campaigns/shm/jobs/shm-0004','','','',2,1700000000.25,NULL,NULL,0.0,'');
CREATE TABLE locks (
	campaign_id INTEGER NOT NULL, 
	host TEXT NOT NULL, 
	boot_id TEXT NOT NULL, 
	pid BIGINT NOT NULL, 
	pid_start BIGINT NOT NULL, 
	pid_namespace BIGINT NOT NULL, 
	since DOUBLE NOT NULL, 
	heartbeat DOUBLE NOT NULL, 
	CONSTRAINT pk_locks PRIMARY KEY (campaign_id), 
	CONSTRAINT fk_locks_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "locks" VALUES(1,'node1','boot',1,2,3,1.79590626374760746952e+09,1.79590626375417017931e+09);
CREATE TABLE measurements (
	run_id INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	bytes BIGINT NOT NULL, 
	median_s DOUBLE NOT NULL, 
	min_s DOUBLE NOT NULL, 
	mean_s DOUBLE NOT NULL, 
	p95_s DOUBLE NOT NULL, 
	max_s DOUBLE NOT NULL, 
	algbw DOUBLE NOT NULL, 
	busbw DOUBLE NOT NULL, 
	batch INTEGER NOT NULL, 
	first_call_s DOUBLE, 
	canary_s DOUBLE, 
	canary_after_s DOUBLE, 
	wrong BIGINT NOT NULL, 
	n_samples INTEGER NOT NULL, 
	samples BLOB NOT NULL, 
	CONSTRAINT pk_measurements PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_measurements_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "measurements" VALUES(1,0,'allreduce',8,1.008e-06,9.576e-07,1.008e-06,1.04832e-06,1.0584e-06,7.93650793650793749851e+06,7.93650793650793749851e+06,16,0.0004,6.0e-08,NULL,0,11,X'789C7BDCD6606AFDB0D1748A75B3E9DBA92DA6AE1F5A4DE779B59B7E5BD261EAFFBFD3744564B729C3961ED348BE3E5300DE631409');
INSERT INTO "measurements" VALUES(1,1,'allreduce',1024,2.024e-06,1.9228e-06,2.024e-06,2.10496e-06,2.1252e-06,5.05928853754940688596e+08,5.05928853754940688596e+08,16,0.0004,6.0e-08,NULL,0,11,X'789C2BE16434D34965327B7A80D96CAE0CAB5958059B19DF1576B3E3FA9C66F5DD5C6616CFB9CD3E38F19AAD98C76706001AB00D57');
INSERT INTO "measurements" VALUES(1,2,'allreduce',1048576,0.001049576,0.0009970972,0.001049576,0.00109155904,0.0011020548,9.99047234311760187167e+08,9.99047234311760187167e+08,16,0.0004,6.0e-08,NULL,0,11,X'789CE3D8D8646526D8629552D86A35F1629BD57EC30EABB7133BADA43F75597906F558956FEAB55A2AD46F75B968821500991D12D5');
CREATE TABLE profile_points (
	profile_id INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	is_guard BOOLEAN NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	bytes BIGINT NOT NULL, 
	speed VARCHAR(32) NOT NULL, 
	default_s DOUBLE NOT NULL, 
	tuned_s DOUBLE NOT NULL, 
	ratio DOUBLE NOT NULL, 
	low DOUBLE NOT NULL, 
	high DOUBLE NOT NULL, 
	pairs INTEGER NOT NULL, 
	verdict VARCHAR(32) NOT NULL, 
	share DOUBLE NOT NULL, 
	CONSTRAINT pk_profile_points PRIMARY KEY (profile_id, place), 
	CONSTRAINT fk_profile_points_profile_id_profiles FOREIGN KEY(profile_id) REFERENCES profiles (id)
);
INSERT INTO "profile_points" VALUES(1,0,0,'allreduce',1024,'fast',2.0e-05,1.5e-05,1.40000000000000013322e+00,1.3,1.5,7,'faster',1.0);
INSERT INTO "profile_points" VALUES(1,1,0,'allreduce',1048576,'fast',2.0e-05,1.5e-05,1.70000000000000017763e+00,1.6,1.8,7,'faster',1.0);
INSERT INTO "profile_points" VALUES(1,2,0,'allreduce',1048576,'slow',2.0e-05,1.5e-05,1.3,1.2,1.4,7,'faster',1.0);
INSERT INTO "profile_points" VALUES(1,3,1,'broadcast',8,'all',2.0e-05,1.5e-05,1.1,1.0,1.2,7,'faster',1.0);
CREATE TABLE profiles (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	campaign_id INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	backend VARCHAR(64) NOT NULL, 
	ranks INTEGER NOT NULL, 
	nodes INTEGER NOT NULL, 
	bytes_low BIGINT NOT NULL, 
	bytes_high BIGINT NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	verdict VARCHAR(32) NOT NULL, 
	level DOUBLE NOT NULL, 
	minimum_gain DOUBLE NOT NULL, 
	note TEXT NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	created DOUBLE NOT NULL, 
	details JSON NOT NULL, 
	conditions JSON NOT NULL, 
	CONSTRAINT uq_profiles_campaign_id_name UNIQUE (campaign_id, name), 
	CONSTRAINT fk_profiles_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_profiles_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);
INSERT INTO "profiles" VALUES(1,1,'allreduce-large','allreduce','mpi-host',2,1,1024,1048576,1,'faster',0.95,0.02,'steady',0,1.79590626387088894838e+09,'{"contributions":[],"boundaries":[]}','{"beside":"","emulated_nodes":0,"timing":"","pattern":"","estimand":""}');
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	run_id VARCHAR(255) NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	phase VARCHAR(32) NOT NULL, 
	block INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	session TEXT NOT NULL, 
	operation VARCHAR(64) NOT NULL, 
	workload JSON NOT NULL, 
	timing JSON NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	outcome VARCHAR(32), 
	started_at DOUBLE NOT NULL, 
	wall_s DOUBLE, 
	exit_code INTEGER, 
	detail TEXT NOT NULL, 
	output_tail TEXT NOT NULL, 
	oversubscribed BOOLEAN NOT NULL, 
	other_load DOUBLE, 
	header JSON, 
	footer JSON, 
	nodes TEXT, 
	distance TEXT, 
	end_s DOUBLE, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT uq_runs_run_id UNIQUE (run_id), 
	CONSTRAINT fk_runs_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_runs_trial_id_trials FOREIGN KEY(trial_id) REFERENCES trials (id), 
	CONSTRAINT fk_runs_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);
INSERT INTO "runs" VALUES(1,'r1',1,1,1,'search',4,2,'s1','allreduce','{"operation":"allreduce","sizes":[8,1024,1048576],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"}','{"warmup":3,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.125,"mode":"blocking","operations":0,"timer":"wall","graph":false}','stored','ok',1700000000.5,0.75,0,'','',0,0.25,'{"library":"MPICH 4.3.0","ranks":[{"rank":0,"cores":[0]}]}','{"sizes":3}','n1,n2','same-switch',0.125);
INSERT INTO "runs" VALUES(2,'r2',1,1,1,'search',4,2,'s1','allreduce','{"operation":"allreduce","sizes":[8,1024,1048576],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"}','{"warmup":3,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.125,"mode":"blocking","operations":0,"timer":"wall","graph":false}','running',NULL,1.79590626376237845421e+09,NULL,NULL,'','',0,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE stacks (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(128) NOT NULL, 
	text TEXT NOT NULL, 
	description JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_stacks PRIMARY KEY (id), 
	CONSTRAINT uq_stacks_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "stacks" VALUES(1,'stack-1','MPICH 4.3.0','{"version":"4.3.0","libraries":["libmpi"]}',1795906263.74301);
CREATE TABLE systems (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(128) NOT NULL, 
	name TEXT NOT NULL, 
	description JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_systems PRIMARY KEY (id), 
	CONSTRAINT uq_systems_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "systems" VALUES(1,'sys-1','laptop','{"cpu":{"model":"Xeon","cores":2}}',1.79590626374147439001e+09);
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	origin VARCHAR(32) NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_trials PRIMARY KEY (id), 
	CONSTRAINT uq_trials_campaign_id_number UNIQUE (campaign_id, number), 
	CONSTRAINT fk_trials_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_trials_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);
INSERT INTO "trials" VALUES(1,1,1,1,'sampler',1.79590626374977421764e+09);
CREATE TABLE verifications (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	profile VARCHAR(255) NOT NULL, 
	finding VARCHAR(32) NOT NULL, 
	first_block INTEGER NOT NULL, 
	last_block INTEGER NOT NULL, 
	share DOUBLE NOT NULL, 
	session_spread DOUBLE NOT NULL, 
	ended_at DOUBLE NOT NULL, 
	CONSTRAINT pk_verifications PRIMARY KEY (id), 
	CONSTRAINT fk_verifications_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_verifications_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);
INSERT INTO "verifications" VALUES(1,1,1,'allreduce-large','holds',4,9,0.15,0.2,1.79590626487162470818e+09);
CREATE INDEX ix_decisions_campaign ON decisions (campaign_id, id);
CREATE INDEX ix_conclusions_campaign ON conclusions (campaign_id, id);
CREATE INDEX ix_jobs_campaign ON jobs (campaign_id, node_hours);
CREATE INDEX ix_jobs_open ON jobs (campaign_id, prepared_at) WHERE stage <> 'over';
CREATE INDEX ix_profiles_best ON profiles (operation, created, id, bytes_low, bytes_high);
CREATE INDEX ix_profiles_ranges ON profiles (operation, campaign_id, bytes_low, bytes_high, verdict);
CREATE INDEX ix_verifications_profile ON verifications (campaign_id, configuration_id, profile, id, finding);
CREATE INDEX ix_runs_campaign ON runs (campaign_id, id);
CREATE INDEX ix_runs_configuration ON runs (campaign_id, configuration_id, phase, block);
CREATE INDEX ix_runs_campaign_state ON runs (campaign_id, state, outcome, wall_s, started_at, id);
CREATE VIEW results AS 
SELECT c.name AS campaign, c.simulated AS simulated, c.site AS site,
       s.name AS system, k.text AS stack,
       r.run_id AS run, r.id AS run_number, strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at, 'unixepoch') AS started,
       r.phase AS phase, r.block AS block, r.position AS position,
       t.number AS trial, t.origin AS origin,
       r.outcome AS outcome, r.detail AS detail, r.exit_code AS exit_code, r.wall_s AS wall_s,
       r.oversubscribed AS oversubscribed, r.other_load AS other_load,
       r.nodes AS node_names, r.distance AS distance,
       json_extract(r.workload, '$.backend') AS backend, json_extract(r.workload, '$.ranks') AS ranks, json_extract(r.workload, '$.nodes') AS nodes, json_extract(r.workload, '$.dtype') AS dtype,
       coalesce(m.operation, r.operation) AS operation, m.bytes AS bytes,
       m.median_s AS median_s, m.min_s AS min_s, m.mean_s AS mean_s, m.p95_s AS p95_s,
       m.max_s AS max_s, m.first_call_s AS first_call_s,
       m.algbw AS algbw_bytes_per_s, m.busbw AS busbw_bytes_per_s,
       m.n_samples AS samples, m.batch AS batch, m.wrong AS wrong_elements,
       m.canary_s AS canary_s, m.canary_after_s AS canary_after_s,
       g.environment AS configuration
FROM runs r
JOIN campaigns c ON c.id = r.campaign_id
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
JOIN trials t ON t.id = r.trial_id
JOIN configurations g ON g.id = r.configuration_id
LEFT JOIN measurements m ON m.run_id = r.id
WHERE r.state = 'stored';
CREATE VIEW campaigns_overview AS 
SELECT c.name AS campaign, c.simulated AS simulated, c.site AS site,
       s.name AS system, k.text AS stack,
       strftime('%Y-%m-%dT%H:%M:%fZ', c.created, 'unixepoch') AS created, strftime('%Y-%m-%dT%H:%M:%fZ', c.finished, 'unixepoch') AS finished, strftime('%Y-%m-%dT%H:%M:%fZ', r.last_run, 'unixepoch') AS last_run,
       l.host AS controller_host, strftime('%Y-%m-%dT%H:%M:%fZ', l.heartbeat, 'unixepoch') AS controller_heartbeat,
       (SELECT count(*) FROM trials t WHERE t.campaign_id = c.id) AS trials,
       coalesce(r.runs, 0) AS runs, coalesce(r.ok, 0) AS runs_ok,
       coalesce(r.runs - r.ok - r.lost, 0) AS runs_failed, coalesce(r.lost, 0) AS runs_lost,
       coalesce(r.measured_s, 0) AS measured_s,
       (SELECT coalesce(sum(j.node_hours), 0) FROM jobs j WHERE j.campaign_id = c.id)
         AS node_hours,
       (SELECT count(*) FROM profiles p WHERE p.campaign_id = c.id) AS profiles
FROM campaigns c
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
LEFT JOIN locks l ON l.campaign_id = c.id
LEFT JOIN (
  SELECT campaign_id, max(started_at) AS last_run, sum(wall_s) AS measured_s,
         sum(CASE WHEN state = 'stored' THEN 1 ELSE 0 END) AS runs,
         sum(CASE WHEN state = 'stored' AND outcome = 'ok' THEN 1 ELSE 0 END) AS ok,
         sum(CASE WHEN state = 'stored' AND outcome IN ('interrupted', 'node-failure', 'preempted', 'cancelled', 'never-started') THEN 1 ELSE 0 END) AS lost
  FROM runs GROUP BY campaign_id
) r ON r.campaign_id = c.id;
CREATE VIEW profiles_overview AS 
SELECT p.id AS number, c.name || '/' || p.name AS profile, p.simulated AS simulated,
       c.site AS site, s.name AS system, k.text AS stack, strftime('%Y-%m-%dT%H:%M:%fZ', p.created, 'unixepoch') AS created,
       p.operation AS operation, p.backend AS backend, p.ranks AS ranks, p.nodes AS nodes,
       p.bytes_low AS bytes_low, p.bytes_high AS bytes_high, p.verdict AS verdict,
       g.environment AS configuration, p.level AS level, p.minimum_gain AS minimum_gain,
       p.note AS note
FROM profiles p
JOIN campaigns c ON c.id = p.campaign_id
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
JOIN configurations g ON g.id = p.configuration_id;
CREATE VIEW profile_evidence AS 
SELECT p.id AS number, c.name || '/' || p.name AS profile, p.simulated AS simulated,
       x.is_guard AS is_guard,
       (NOT x.is_guard AND x.bytes BETWEEN p.bytes_low AND p.bytes_high) AS in_range,
       x.operation AS operation, x.bytes AS bytes, x.speed AS machine_state,
       x.default_s AS default_s, x.tuned_s AS tuned_s,
       x.ratio AS speedup, x.low AS low, x.high AS high, x.pairs AS pairs,
       x.verdict AS verdict, x.share AS share
FROM profile_points x
JOIN profiles p ON p.id = x.profile_id
JOIN campaigns c ON c.id = p.campaign_id;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('profiles',1);
COMMIT;
