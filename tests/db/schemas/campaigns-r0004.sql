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
	CONSTRAINT pk_campaigns PRIMARY KEY (id), 
	CONSTRAINT fk_campaigns_stack_id_stacks FOREIGN KEY(stack_id) REFERENCES stacks (id), 
	CONSTRAINT fk_campaigns_system_id_systems FOREIGN KEY(system_id) REFERENCES systems (id), 
	CONSTRAINT uq_campaigns_name UNIQUE (name)
);
INSERT INTO "campaigns" VALUES(1,'faster','06348ee076cbf15f','{"space":{"name":"conclusions","content":"9a6deb9a8dadf79b"},"workload":{"operation":"allreduce","sizes":[8,65536],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"},"timing":{"warmup":5,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.05}}','{}','{}','9a6deb9a8dadf79b',1,1,1,1,'',1.79538386008749675749e+09,NULL);
INSERT INTO "campaigns" VALUES(2,'default','06348ee076cbf15f','{"space":{"name":"conclusions","content":"9a6deb9a8dadf79b"},"workload":{"operation":"allreduce","sizes":[8,65536],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"},"timing":{"warmup":5,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.05}}','{}','{}','9a6deb9a8dadf79b',1,1,1,1,'',1.79538386239837288857e+09,NULL);
INSERT INTO "campaigns" VALUES(3,'beside','3973e2aba2b6b8f8','{"space":{"name":"conclusions","content":"9a6deb9a8dadf79b"},"workload":{"operation":"allreduce","sizes":[8,65536],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum"},"timing":{"warmup":5,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.05,"mode":"batched","operations":20},"aggressor":{"pattern":"incast","nodes":2,"ranks_per_node":2,"message_bytes":131072,"burst_s":0.0,"pause_s":0.0}}','{}','{}','9a6deb9a8dadf79b',1,1,1,1,'',1.79538386420986533159e+09,NULL);
INSERT INTO "campaigns" VALUES(4,'emulated','be4a87c3e5dfb217','{"space":{"name":"conclusions","content":"9a6deb9a8dadf79b"},"workload":{"operation":"stream","sizes":[8,65536],"ranks":2,"nodes":1,"backend":"mpi-host","dtype":"float32","reduction":"sum","emulated_nodes":2,"window":8},"timing":{"warmup":5,"min_samples":10,"max_samples":200,"relative_ci":0.01,"time_cap_s":0.05}}','{}','{}','9a6deb9a8dadf79b',1,1,1,1,'',1.79538386561673307421e+09,NULL);
CREATE TABLE commtune_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT commtune_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "commtune_schema" VALUES('r0004');
CREATE TABLE conclusions (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	conclusion JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_conclusions PRIMARY KEY (id), 
	CONSTRAINT fk_conclusions_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "conclusions" VALUES(1,1,'{"version":1,"replayed":"","method":{"level":0.95,"minimum_gain":0.02,"tolerance":0.05,"looks":1,"confirmations":1,"interval":"a trimmed mean with Tukey and McLaughlin''s interval, over machine speeds by their shares"},"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3},"spent":{"search":{"runs":20,"failed":0,"lost":0,"disturbed":0,"wall_s":4.000000000000001},"ablate":{"runs":9,"failed":0,"lost":0,"disturbed":0,"wall_s":1.7999999999999998},"confirm":{"runs":21,"failed":0,"lost":0,"disturbed":0,"wall_s":4.200000000000001}},"noise":[{"bytes":8,"speed":"all","share":1.0,"spread":0.027118375073672797,"runs":15,"drift_per_hour":null},{"bytes":65536,"speed":"all","share":1.0,"spread":0.032873954187733256,"runs":15,"drift_per_hour":null}],"confirmed":[{"configuration":{"V":"2","W":"2"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":1.0106805376985827e-06,"verdict":"undecided","share":1.0,"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226,"pairs":7,"more_pairs":24},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":9.688070688009516e-06,"verdict":"faster","share":1.0,"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126,"pairs":7,"more_pairs":0}]},{"configuration":{"V":"1","W":"3"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":9.934889018121485e-07,"verdict":"undecided","share":1.0,"ratio":0.9966370727890401,"low":0.9303673108845831,"high":1.0676272083475304,"pairs":7,"more_pairs":69},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.3985510473248176e-05,"verdict":"undecided","share":1.0,"ratio":0.9992093533520691,"low":0.957903031074941,"high":1.0422968708073221,"pairs":7,"more_pairs":29}]}],"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}],"answers":{"one":null,"ranges":[{"low":8,"high":8,"configuration":{},"gains":{}},{"low":65536,"high":65536,"configuration":{"V":"2","W":"2"},"gains":{"65536":1.4776300621310154}}],"trade_off":{"weighted":false,"one_mean_gain":1.0,"ranges_mean_gain":1.2155780773488043,"lost_by_one":{"8":null,"65536":null}}},"detectable":{"8":0.1358394153923177,"65536":0.09070499534883858},"more":null,"not_followed":[],"set_aside":[]}',1.79538386237807917589e+09);
INSERT INTO "conclusions" VALUES(2,2,'{"version":1,"replayed":"","method":{"level":0.95,"minimum_gain":0.02,"tolerance":0.05,"looks":1,"confirmations":1,"interval":"a trimmed mean with Tukey and McLaughlin''s interval, over machine speeds by their shares"},"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3},"spent":{"search":{"runs":20,"failed":0,"lost":0,"disturbed":0,"wall_s":4.000000000000001},"ablate":{"runs":9,"failed":0,"lost":0,"disturbed":0,"wall_s":1.7999999999999998},"confirm":{"runs":21,"failed":0,"lost":0,"disturbed":0,"wall_s":4.200000000000001}},"noise":[{"bytes":8,"speed":"all","share":1.0,"spread":0.027118375073672797,"runs":15,"drift_per_hour":null},{"bytes":65536,"speed":"all","share":1.0,"spread":0.032873954187733256,"runs":15,"drift_per_hour":null}],"confirmed":[{"configuration":{"V":"2","W":"2"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":1.0106805376985827e-06,"verdict":"undecided","share":1.0,"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226,"pairs":7,"more_pairs":24},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.4532106032014273e-05,"verdict":"default","share":1.0,"ratio":0.9850867080873437,"low":0.9657221058919373,"high":1.0048396081335484,"pairs":7,"more_pairs":0}]},{"configuration":{"V":"1","W":"3"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":9.934889018121485e-07,"verdict":"undecided","share":1.0,"ratio":0.9966370727890401,"low":0.9303673108845831,"high":1.0676272083475304,"pairs":7,"more_pairs":69},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.3985510473248176e-05,"verdict":"undecided","share":1.0,"ratio":0.9992093533520691,"low":0.957903031074941,"high":1.0422968708073221,"pairs":7,"more_pairs":29}]}],"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}],"answers":{"one":null,"ranges":[{"low":8,"high":65536,"configuration":{},"gains":{}}],"trade_off":{"weighted":false,"one_mean_gain":1.0,"ranges_mean_gain":1.0,"lost_by_one":{"8":null,"65536":null}}},"detectable":{"8":0.1358394153923177,"65536":0.09070499534883858},"more":null,"not_followed":[],"set_aside":[]}',1.79538386420517826077e+09);
INSERT INTO "conclusions" VALUES(3,3,'{"version":1,"replayed":"","method":{"level":0.95,"minimum_gain":0.02,"tolerance":0.05,"looks":1,"confirmations":1,"interval":"a trimmed mean with Tukey and McLaughlin''s interval, over machine speeds by their shares"},"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3},"spent":{"search":{"runs":20,"failed":0,"lost":0,"disturbed":0,"wall_s":4.000000000000001},"ablate":{"runs":9,"failed":0,"lost":0,"disturbed":0,"wall_s":1.7999999999999998},"confirm":{"runs":21,"failed":0,"lost":0,"disturbed":0,"wall_s":4.200000000000001}},"noise":[{"bytes":8,"speed":"all","share":1.0,"spread":0.027118375073672797,"runs":15,"drift_per_hour":null},{"bytes":65536,"speed":"all","share":1.0,"spread":0.032873954187733256,"runs":15,"drift_per_hour":null}],"confirmed":[{"configuration":{"V":"2","W":"2"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":1.0106805376985827e-06,"verdict":"undecided","share":1.0,"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226,"pairs":7,"more_pairs":24},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.4532106032014273e-05,"verdict":"default","share":1.0,"ratio":0.9850867080873437,"low":0.9657221058919373,"high":1.0048396081335484,"pairs":7,"more_pairs":0}]},{"configuration":{"V":"1","W":"3"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":9.934889018121485e-07,"verdict":"undecided","share":1.0,"ratio":0.9966370727890401,"low":0.9303673108845831,"high":1.0676272083475304,"pairs":7,"more_pairs":69},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.3985510473248176e-05,"verdict":"undecided","share":1.0,"ratio":0.9992093533520691,"low":0.957903031074941,"high":1.0422968708073221,"pairs":7,"more_pairs":29}]}],"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}],"answers":{"one":null,"ranges":[{"low":8,"high":65536,"configuration":{},"gains":{}}],"trade_off":{"weighted":false,"one_mean_gain":1.0,"ranges_mean_gain":1.0,"lost_by_one":{"8":null,"65536":null}}},"detectable":{"8":0.1358394153923177,"65536":0.09070499534883858},"more":null,"not_followed":[],"set_aside":[]}',1.79538386561224627495e+09);
INSERT INTO "conclusions" VALUES(4,4,'{"version":1,"replayed":"","method":{"level":0.95,"minimum_gain":0.02,"tolerance":0.05,"looks":1,"confirmations":1,"interval":"a trimmed mean with Tukey and McLaughlin''s interval, over machine speeds by their shares"},"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3},"spent":{"search":{"runs":20,"failed":0,"lost":0,"disturbed":0,"wall_s":4.000000000000001},"ablate":{"runs":9,"failed":0,"lost":0,"disturbed":0,"wall_s":1.7999999999999998},"confirm":{"runs":21,"failed":0,"lost":0,"disturbed":0,"wall_s":4.200000000000001}},"noise":[{"bytes":8,"speed":"all","share":1.0,"spread":0.027118375073672797,"runs":15,"drift_per_hour":null},{"bytes":65536,"speed":"all","share":1.0,"spread":0.032873954187733256,"runs":15,"drift_per_hour":null}],"confirmed":[{"configuration":{"V":"2","W":"2"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":1.0106805376985827e-06,"verdict":"undecided","share":1.0,"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226,"pairs":7,"more_pairs":24},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":9.688070688009516e-06,"verdict":"faster","share":1.0,"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126,"pairs":7,"more_pairs":0}]},{"configuration":{"V":"1","W":"3"},"blocks":7,"stopped":"budget","points":[{"bytes":8,"speed":"all","default_s":9.928420452019454e-07,"tuned_s":9.934889018121485e-07,"verdict":"undecided","share":1.0,"ratio":0.9966370727890401,"low":0.9303673108845831,"high":1.0676272083475304,"pairs":7,"more_pairs":69},{"bytes":65536,"speed":"all","default_s":1.4249850003444758e-05,"tuned_s":1.3985510473248176e-05,"verdict":"undecided","share":1.0,"ratio":0.9992093533520691,"low":0.957903031074941,"high":1.0422968708073221,"pairs":7,"more_pairs":29}]}],"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}],"answers":{"one":null,"ranges":[{"low":8,"high":8,"configuration":{},"gains":{}},{"low":65536,"high":65536,"configuration":{"V":"2","W":"2"},"gains":{"65536":1.4776300621310154}}],"trade_off":{"weighted":false,"one_mean_gain":1.0,"ranges_mean_gain":1.2155780773488043,"lost_by_one":{"8":null,"65536":null}}},"detectable":{"8":0.1358394153923177,"65536":0.09070499534883858},"more":null,"not_followed":[],"set_aside":[]}',1.7953838690865414143e+09);
CREATE TABLE configurations (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	environment JSON NOT NULL, 
	CONSTRAINT pk_configurations PRIMARY KEY (id), 
	CONSTRAINT uq_configurations_key UNIQUE ("key")
);
INSERT INTO "configurations" VALUES(1,'44136fa355b3678a','{}');
INSERT INTO "configurations" VALUES(2,'6a75faec66c65920','{"W":"2"}');
INSERT INTO "configurations" VALUES(3,'4ecf997627789e1a','{"V":"3"}');
INSERT INTO "configurations" VALUES(4,'689c3c707ae3b64f','{"V":"3","W":"1"}');
INSERT INTO "configurations" VALUES(5,'807ea8684dace8da','{"V":"1","W":"1"}');
INSERT INTO "configurations" VALUES(6,'5089e4e67971e273','{"W":"1"}');
INSERT INTO "configurations" VALUES(7,'41d16190e3d4c627','{"V":"2","W":"1"}');
INSERT INTO "configurations" VALUES(8,'acf3578bfa42beae','{"V":"1","W":"2"}');
INSERT INTO "configurations" VALUES(9,'6810e23243085542','{"V":"2","W":"3"}');
INSERT INTO "configurations" VALUES(10,'fcd45db16af75c86','{"V":"1"}');
INSERT INTO "configurations" VALUES(11,'319900d6a4dc90d9','{"V":"2"}');
INSERT INTO "configurations" VALUES(12,'3271f99466f0e8a4','{"V":"1","W":"3"}');
INSERT INTO "configurations" VALUES(13,'f88f4046b5071586','{"V":"2","W":"2"}');
INSERT INTO "configurations" VALUES(14,'520776af2f5b590a','{"W":"3"}');
INSERT INTO "configurations" VALUES(15,'f904c46424751a4f','{"V":"3","W":"2"}');
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	decision JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT fk_decisions_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "decisions" VALUES(1,1,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.79538386190095639234e+09);
INSERT INTO "decisions" VALUES(2,1,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[{"made":7,"planned":7,"stopped":{"0":"budget","1":"budget"}}],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.79538386232109856612e+09);
INSERT INTO "decisions" VALUES(3,2,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.7953838636135311127e+09);
INSERT INTO "decisions" VALUES(4,2,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[{"made":7,"planned":7,"stopped":{"0":"budget","1":"budget"}}],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.79538386418078446389e+09);
INSERT INTO "decisions" VALUES(5,3,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.79538386495017743106e+09);
INSERT INTO "decisions" VALUES(6,3,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[{"made":7,"planned":7,"stopped":{"0":"budget","1":"budget"}}],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.7953838655870544911e+09);
INSERT INTO "decisions" VALUES(7,4,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.7953838676747927665e+09);
INSERT INTO "decisions" VALUES(8,4,'{"candidates":[{"V":"2","W":"2"},{"V":"1","W":"3"}],"blocks":7,"first_block":8,"budget_s":3,"looks":[{"made":7,"planned":7,"stopped":{"0":"budget","1":"budget"}}],"number":0,"error_share":0.8,"budget":{"search_s":4,"ablation_s":1.5,"confirmation_s":3,"trials":null,"node_hours":null},"ablations":[{"from":{"V":"2","W":"2"},"to":{"V":"2","W":"2"},"blocks":2,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"note":"too little time to leave variables out"},{"from":{"V":"1","W":"3"},"to":{"V":"1","W":"3"},"blocks":1,"gain_kept":null,"variables":[{"name":"V","names":["V"],"values":{"V":"1"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"3"},"kept":true,"points":[]}],"note":"too little time to leave variables out"}]}',1.79538386899924516681e+09);
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
	canary_s DOUBLE, 
	canary_after_s DOUBLE, 
	wrong BIGINT NOT NULL, 
	n_samples INTEGER NOT NULL, 
	samples BLOB NOT NULL, first_call_s DOUBLE, 
	CONSTRAINT pk_measurements PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_measurements_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id)
);
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
	verdict VARCHAR(32) NOT NULL, share DOUBLE DEFAULT (1.0) NOT NULL, 
	CONSTRAINT pk_profile_points PRIMARY KEY (profile_id, place), 
	CONSTRAINT fk_profile_points_profile_id_profiles FOREIGN KEY(profile_id) REFERENCES profiles (id)
);
INSERT INTO "profile_points" VALUES(1,0,0,'allreduce',8,'all',9.92842045201945355356e-07,9.93488901812148498919e-07,9.96637072789040123765e-01,9.3036731088458313188e-01,1.06762720834753044307e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(2,0,0,'allreduce',8,'all',9.92842045201945355356e-07,1.01068053769858273098e-06,9.9362455807411420583e-01,9.46381195739201874772e-01,1.04322630970792262772e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(2,1,0,'allreduce',65536,'all',1.42498500034447580912e-05,9.68807068800951558511e-06,1.47763006213101544261e+00,1.40557515798367904658e+00,1.55337876321421264336e+00,7,'faster',1.0);
INSERT INTO "profile_points" VALUES(3,0,0,'allreduce',8,'all',9.92842045201945355356e-07,9.93488901812148498919e-07,9.96637072789040123765e-01,9.3036731088458313188e-01,1.06762720834753044307e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(3,1,0,'allreduce',65536,'all',1.42498500034447580912e-05,1.39855104732481759456e-05,9.99209353352069062914e-01,0.957903031074941,1.04229687080732213999e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(4,0,0,'allreduce',8,'all',9.92842045201945355356e-07,9.93488901812148498919e-07,9.96637072789040123765e-01,9.3036731088458313188e-01,1.06762720834753044307e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(4,1,0,'allreduce',65536,'all',1.42498500034447580912e-05,1.39855104732481759456e-05,9.99209353352069062914e-01,0.957903031074941,1.04229687080732213999e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(5,0,0,'stream',8,'all',9.92842045201945355356e-07,9.93488901812148498919e-07,9.96637072789040123765e-01,9.3036731088458313188e-01,1.06762720834753044307e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(6,0,0,'stream',8,'all',9.92842045201945355356e-07,1.01068053769858273098e-06,9.9362455807411420583e-01,9.46381195739201874772e-01,1.04322630970792262772e+00,7,'undecided',1.0);
INSERT INTO "profile_points" VALUES(6,1,0,'stream',65536,'all',1.42498500034447580912e-05,9.68807068800951558511e-06,1.47763006213101544261e+00,1.40557515798367904658e+00,1.55337876321421264336e+00,7,'faster',1.0);
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
	created DOUBLE NOT NULL, details JSON DEFAULT '{}' NOT NULL, 
	CONSTRAINT fk_profiles_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_profiles_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id), 
	CONSTRAINT uq_profiles_campaign_id_name UNIQUE (campaign_id, name)
);
INSERT INTO "profiles" VALUES(1,1,'allreduce-8-8','allreduce','mpi-host',2,1,8,8,1,'undecided',0.99,0.02,'no candidate was shown to gain at 8 B; one of them could still gain up to 7%; this confirmation would have found one of 14% in 9 of 10 cases',1,1.79538386233098626139e+09,'{"contributions":[],"boundaries":[{"below":8,"from":65536,"evidence":[{"bytes":8,"configuration":{"V":"2","W":"2"},"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226},{"bytes":65536,"configuration":{"V":"2","W":"2"},"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126}]}]}');
INSERT INTO "profiles" VALUES(2,1,'allreduce-65536-65536','allreduce','mpi-host',2,1,65536,65536,13,'faster',0.99,0.02,'',1,1.79538386233098626139e+09,'{"contributions":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"boundaries":[{"below":8,"from":65536,"evidence":[{"bytes":8,"configuration":{"V":"2","W":"2"},"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226},{"bytes":65536,"configuration":{"V":"2","W":"2"},"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126}]}]}');
INSERT INTO "profiles" VALUES(3,2,'allreduce-8-65536','allreduce','mpi-host',2,1,8,65536,1,'undecided',0.99,0.02,'no candidate was shown to gain here; one of them could still gain up to 7% at 8 B; this confirmation would have found one of 14% at 8 B in 9 of 10 cases',1,1.7953838641924755573e+09,'{"contributions":[],"boundaries":[]}');
INSERT INTO "profiles" VALUES(4,3,'allreduce-8-65536','allreduce','mpi-host',2,1,8,65536,1,'undecided',0.99,0.02,'measured beside an aggressor: incast of 128 KiB from 4 ranks on 2 nodes; timed: in batches of 20
no candidate was shown to gain here; one of them could still gain up to 7% at 8 B; this confirmation would have found one of 14% at 8 B in 9 of 10 cases',1,1.79538386560580945014e+09,'{"contributions":[],"boundaries":[]}');
INSERT INTO "profiles" VALUES(5,4,'stream-8-8','stream','mpi-host',2,1,8,8,1,'undecided',0.99,0.02,'emulated nodes: 2, over sockets on one machine; pattern: window of 8
no candidate was shown to gain at 8 B; one of them could still gain up to 7%; this confirmation would have found one of 14% in 9 of 10 cases',1,1.79538386905547332761e+09,'{"contributions":[],"boundaries":[{"below":8,"from":65536,"evidence":[{"bytes":8,"configuration":{"V":"2","W":"2"},"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226},{"bytes":65536,"configuration":{"V":"2","W":"2"},"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126}]}]}');
INSERT INTO "profiles" VALUES(6,4,'stream-65536-65536','stream','mpi-host',2,1,65536,65536,13,'faster',0.99,0.02,'emulated nodes: 2, over sockets on one machine; pattern: window of 8',1,1.79538386905547332761e+09,'{"contributions":[{"name":"V","names":["V"],"values":{"V":"2"},"kept":true,"points":[]},{"name":"W","names":["W"],"values":{"W":"2"},"kept":true,"points":[{"bytes":8,"speed":"all","ratio":1.0539399777916971,"low":0.6904056830961417,"high":1.6088938778808994,"pairs":2},{"bytes":65536,"speed":"all","ratio":1.0205073229431756,"low":0.8436595844076241,"high":1.234425845955263,"pairs":2}]}],"boundaries":[{"below":8,"from":65536,"evidence":[{"bytes":8,"configuration":{"V":"2","W":"2"},"ratio":0.9936245580741142,"low":0.9463811957392019,"high":1.0432263097079226},{"bytes":65536,"configuration":{"V":"2","W":"2"},"ratio":1.4776300621310154,"low":1.405575157983679,"high":1.5533787632142126}]}]}');
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
	header JSON, 
	footer JSON, other_load DOUBLE, nodes TEXT, distance TEXT, end_s DOUBLE, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_runs_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id), 
	CONSTRAINT fk_runs_trial_id_trials FOREIGN KEY(trial_id) REFERENCES trials (id), 
	CONSTRAINT uq_runs_run_id UNIQUE (run_id)
);
CREATE TABLE stacks (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(128) NOT NULL, 
	text TEXT NOT NULL, 
	description JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_stacks PRIMARY KEY (id), 
	CONSTRAINT uq_stacks_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "stacks" VALUES(1,'f','made-up','{}',1.79538386006646299357e+09);
CREATE TABLE systems (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(128) NOT NULL, 
	name TEXT NOT NULL, 
	description JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_systems PRIMARY KEY (id), 
	CONSTRAINT uq_systems_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "systems" VALUES(1,'f','made-up','{}',1.79538386006373906138e+09);
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	configuration_id INTEGER NOT NULL, 
	origin VARCHAR(32) NOT NULL, 
	label TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_trials PRIMARY KEY (id), 
	CONSTRAINT fk_trials_campaign_id_campaigns FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_trials_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id), 
	CONSTRAINT uq_trials_campaign_id_number UNIQUE (campaign_id, number)
);
INSERT INTO "trials" VALUES(1,1,0,1,'baseline','',1.79538386018281960485e+09);
INSERT INTO "trials" VALUES(16,2,0,1,'baseline','',1.79538386243394255635e+09);
INSERT INTO "trials" VALUES(31,3,0,1,'baseline','',1.79538386423686623571e+09);
INSERT INTO "trials" VALUES(46,4,0,1,'baseline','',1.79538386568772983555e+09);
CREATE INDEX ix_decisions_campaign ON decisions (campaign_id, id);
CREATE INDEX ix_runs_campaign ON runs (campaign_id, id);
CREATE INDEX ix_runs_campaign_state ON runs (campaign_id, state, outcome);
CREATE INDEX ix_profiles_best ON profiles (operation, created, id, bytes_low, bytes_high);
CREATE INDEX ix_conclusions_campaign ON conclusions (campaign_id, id);
CREATE INDEX ix_jobs_campaign ON jobs (campaign_id, node_hours);
CREATE INDEX ix_jobs_open ON jobs (campaign_id, prepared_at) WHERE stage <> 'over';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('profiles',6);
COMMIT;
