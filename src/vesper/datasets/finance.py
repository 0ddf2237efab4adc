"""A payment platform that never existed, with the shape of the paper's Finance set."""


import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vesper.datasets.finance_activity import CHANNELS, NUM_HABITS, TINT, TYPES, draw_activity
from vesper.datasets.finance_graph import draw_edges
from vesper.datasets.folders import new_folder
from vesper.datasets.prepare import prepare_into
from vesper.progress import silent

NUM_NODES = 1_132_511
NUM_EDGES = 1_223_685
NUM_TEST = 226_838
NUM_VAL = 56_710
RISKY_SHARE = 0.06
TRAIN=("2023-01-02","2023-01-30"); TEST=("2023-02-06","2023-03-06")

def simulate_finance(out, *, num_nodes=NUM_NODES, seed=0, progress=silent):
    n_test=round(num_nodes*NUM_TEST/NUM_NODES); n_train=num_nodes-n_test
    m=round(num_nodes*NUM_EDGES/NUM_NODES); m_test=round(m*n_test/num_nodes)
    n_val=round(n_train*NUM_VAL/(NUM_NODES-NUM_TEST))
    with new_folder(out) as folder:
        tw=pq.ParquetWriter(folder/"transfers.parquet", pa.schema([("time",pa.timestamp("s")),("src",pa.int64()),("dst",pa.int64()),("amount",pa.float64())]))
        A=pa.schema([("time",pa.timestamp("s")),("user",pa.int64()),("type",pa.dictionary(pa.int8(),pa.string())),("amount",pa.float64()),("channel",pa.dictionary(pa.int8(),pa.string()))])
        aw=pq.ParquetWriter(folder/"activity.parquet",A)
        L=[]
        users=np.random.default_rng(seed).permutation(num_nodes)+1
        for w,(n,mm,start) in enumerate([(n_train,m-m_test,TRAIN[0]),(n_test,m_test,TEST[0])]):
            rng=np.random.default_rng([seed,w])
            t0=np.datetime64(start,'s').astype(np.int64)
            ids=users[:n] if w==0 else users[n_train:]
            k=max(2,round(RISKY_SHARE*n))
            y=(np.arange(n)<k).astype(np.int32)
            u,v=draw_edges(n,num_edges=mm,num_risky=k,rng=rng)
            tw.write_table(pa.table({"time":pa.array(t0+rng.integers(0,28*86400,len(u))).cast(pa.timestamp("s")),"src":ids[u],"dst":ids[v],"amount":rng.lognormal(4,1,len(u))}))
            L.append((ids,y,np.full(n,t0+27*86400)))
            for a in range(0,n,65536):
                b=min(a+65536,n)
                act=draw_activity(TINT*y[a:b]+rng.standard_normal(b-a), rng.standard_normal((b-a,NUM_HABITS)), num_days=28, rng=rng)
                amt=pa.array(act.amount,mask=np.isnan(act.amount))
                aw.write_table(pa.Table.from_arrays([pa.array(t0+act.seconds).cast(pa.timestamp("s")),pa.array(ids[a:b][act.user]),
                  pa.DictionaryArray.from_arrays(act.kind.astype(np.int8),list(TYPES)),amt,pa.DictionaryArray.from_arrays(act.channel.astype(np.int8),list(CHANNELS))],schema=A))
        tw.close(); aw.close()
        pq.write_table(pa.table({"id":np.concatenate([l[0] for l in L]),"label":np.concatenate([l[1] for l in L]),"time":pa.array(np.concatenate([l[2] for l in L])).cast(pa.timestamp("s"))}),folder/"known_labels.parquet")
        return prepare_into(folder, transfers=folder/"transfers.parquet", activity=folder/"activity.parquet", labels=folder/"known_labels.parquet",train_window="..".join(TRAIN),test_window="..".join(TEST),validation_share=n_val/n_train,seed=seed,progress=progress)
