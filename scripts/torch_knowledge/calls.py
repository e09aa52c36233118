"""Typical calls, as source text, that are run, sampled and exported.

One call per line: `expression`, or `key :: expression` where the outermost call is not the one meant, and after `#`
the condition under which the note holds (see Condition in the knowledge package; none: the typical call). The
variables are those of VARIABLES; each that an expression uses becomes an input of the exported module.
"""

# One call per line, whatever its length.
# ruff: noqa: E501

from __future__ import annotations

VARIABLES = {
    "x": "torch.rand(2, 3) + 0.1",
    "y": "torch.rand(2, 3) + 0.2",
    "v": "torch.rand(3) + 0.1",
    "w": "torch.rand(3) + 0.2",
    "sq": "torch.rand(3, 3) + 2 * torch.eye(3)",
    "spd": "(lambda a: a @ a.T + 3 * torch.eye(3))(torch.rand(3, 3))",
    "b": "torch.rand(2, 3, 4)",
    "b2": "torch.rand(2, 4, 3)",
    "img": "torch.rand(2, 3, 8, 8)",
    "seq": "torch.rand(2, 4, 8)",
    "vol": "torch.rand(1, 2, 4, 4, 4)",
    "i": "torch.randint(0, 3, (2, 3))",
    "ix": "torch.randint(0, 3, (3,))",
    "lengths": "torch.tensor([4, 3])",
    "counts": "torch.tensor([1, 2])",
    "m": "torch.rand(2, 3) > 0.5",
    "t": "torch.tensor(2)",
    "f": "torch.tensor(0.5)",
    "c": "torch.randn(2, 3, dtype=torch.complex64)",
    "table": "torch.rand(5, 4)",
    "weight": "torch.rand(4, 3)",
    "filters": "torch.rand(4, 3, 3, 3)",
    "grid": "torch.rand(2, 4, 4, 2) * 2 - 1",
    "pix": "torch.rand(2, 4, 4, 4)",
}

CALLS = """
torch.tensor([1.0, 2.0])
torch.tensor([[1, 2], [3, 4]])
torch.tensor(3)
torch.tensor([x.sum(), y.sum()])  # data is list of tensors
torch.tensor(x)  # data is tensor
torch.tensor([1.0], requires_grad=True)  # requires_grad == True
torch.tensor(x.shape[0])
torch.tensor(x.sum().item())  # data is number from tensor
torch.as_tensor([1.0, 2.0])
torch.as_tensor(x)  # data is tensor
torch.as_tensor([x.sum(), y.sum()])  # data is list of tensors
torch.asarray(x)  # obj is tensor
torch.from_numpy(np.ones(3))
torch.from_numpy(x.numpy())  # ndarray is array from tensor
torch.frombuffer(bytearray(16), dtype=torch.float32)
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros(t)  # size is tensor
torch.zeros(int(t))  # size is int from tensor
torch.ones(2, 3)
torch.ones(t, 3)  # size is tensor
torch.empty(2, 3)
torch.full((2, 3), 1.5)
torch.full((2,), t)  # fill_value is tensor
torch.full((2,), t.item())  # fill_value is number from tensor
torch.eye(3)
torch.arange(5)
torch.arange(1.0, 2.0, 0.25)
torch.arange(t)  # end is tensor
torch.arange(int(t))  # end is int from tensor
torch.arange(x.shape[0])
torch.linspace(0, 1, 5)
torch.linspace(0, f, 5)  # end is tensor
torch.linspace(0, 1, t)  # steps is tensor
torch.logspace(0, 1, 5)
torch.rand(2, 3)
torch.randn(2, 3)
torch.randn(t, 3)  # size is tensor
torch.randint(0, 5, (2, 3))
torch.randint(0, t, (2, 3))  # high is tensor
torch.randperm(5)
torch.normal(0.0, 1.0, (2, 3))
torch.normal(x, y)
torch.bernoulli(x / 2)
torch.bernoulli(x, p=f)
torch.multinomial(x, 2)
torch.poisson(x)
torch.zeros_like(x)
torch.ones_like(x)
torch.full_like(x, 2.0)
torch.full_like(x, f)  # fill_value is tensor
torch.rand_like(x)
torch.randn_like(x)
torch.empty_like(x)
torch.tril_indices(3, 3)
torch.hann_window(8)
torch.meshgrid(v, w, indexing="ij")
torch.cat([x, y])
torch.cat([x, y], dim=1)
torch.stack([x, y])
torch.hstack([x, y])
torch.vstack([x, y])
torch.chunk(x, 2)
torch.split(x, 1)
torch.split(b, [1, 2], dim=1)
torch.split(b, [t.item(), 1], dim=1)  # split_size_or_sections is list of numbers from tensor
torch.tensor_split(v, 2)
torch.tensor_split(v, torch.tensor([1]))  # tensor_indices_or_sections is tensor
torch.unbind(x)
torch.where(m, x, y)
torch.where(m)  # x is missing
torch.nonzero(x)
torch.nonzero(x, as_tuple=True)  # as_tuple == True
torch.argwhere(x)
torch.masked_select(x, m)
torch.unique(ix)
torch.unique(ix, return_counts=True)  # return_counts == True
torch.unique(ix, return_inverse=True)  # return_inverse == True
torch.unique_consecutive(ix)
torch.bincount(ix)
torch.bincount(ix, minlength=5)  # minlength is given
torch.histc(x, 4)
torch.histc(x, 4, 0.0, 1.0)  # min is given
torch.histogram(x, 4)
torch.repeat_interleave(x, 2, dim=0)
torch.repeat_interleave(x, counts, dim=0)  # repeats is tensor
torch.repeat_interleave(x, counts, dim=0, output_size=3)  # output_size is given
torch.combinations(v)
torch.cartesian_prod(v, w)
torch.triu(sq)
torch.tril(sq)
torch.diag(v)
torch.diag_embed(x)
torch.block_diag(x, y)
torch.flatten(b)
torch.flatten(b, 1)
torch.unflatten(b, 2, (2, 2))
torch.reshape(x, (3, 2))
torch.reshape(x, (t, -1))  # shape is tensor
torch.squeeze(x)
torch.unsqueeze(x, 0)
torch.permute(b, (2, 0, 1))
torch.movedim(b, 0, 1)
torch.moveaxis(b, 0, 1)
torch.swapaxes(b, 0, 1)
torch.swapdims(b, 0, 1)
torch.transpose(x, 0, 1)
torch.t(x)
torch.roll(x, 1, 0)
torch.roll(x, t.item(), 0)  # shifts is number from tensor
torch.flip(x, (0,))
torch.rot90(x)
torch.tile(x, (2, 2))
torch.narrow(x, 0, 0, 1)
torch.narrow(x, 0, t - 2, 1)  # start is tensor
torch.select(x, 0, 1)
torch.select(x, 0, t - 1)  # index is tensor
torch.gather(x, 1, i)
torch.take(x, ix)
torch.take_along_dim(x, i, 1)
torch.index_select(x, 1, ix)
torch.scatter(x, 1, i, y)
torch.scatter_add(x, 1, i, y)
torch.index_add(sq, 0, ix, sq)
torch.masked_fill(x, m, 0.0)
torch.masked_fill(x, m, f)  # value is tensor
torch.masked_scatter(x, m, y)
torch.einsum("ij,kj->ik", x, y)
torch.matmul(x, v)
torch.mm(x, sq)
torch.bmm(b, b2)
torch.mv(x, v)
torch.dot(v, w)
torch.vdot(v, w)
torch.inner(v, w)
torch.outer(v, w)
torch.ger(v, w)
torch.addmm(sq, sq, sq)
torch.baddbmm(torch.zeros(2, 3, 3), b, b2)
torch.addbmm(sq, b, b2)
torch.addmv(w, sq, v)
torch.addr(sq, v, w)
torch.addcmul(x, x, y)
torch.addcdiv(x, x, y)
torch.tensordot(x, y, dims=2)
torch.kron(x, y)
torch.cross(sq, sq, dim=1)
torch.cdist(x, y)
torch.det(sq)
torch.logdet(spd)
torch.slogdet(sq)
torch.inverse(sq)
torch.pinverse(x)
torch.cholesky(spd)
torch.qr(x)
torch.svd(x)
torch.matrix_power(sq, 2)
torch.matrix_exp(sq)
torch.trace(sq)
torch.linalg.det(sq)
torch.linalg.inv(sq)
torch.linalg.pinv(x)
torch.linalg.solve(sq, sq)
torch.linalg.lstsq(sq, sq)
torch.linalg.qr(x)
torch.linalg.svd(x)
torch.linalg.svdvals(x)
torch.linalg.eig(sq)
torch.linalg.eigh(spd)
torch.linalg.eigvals(sq)
torch.linalg.cholesky(spd)
torch.linalg.matrix_rank(x)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, dim=1)
torch.linalg.matrix_norm(x)
torch.linalg.cond(sq)
torch.linalg.lu(sq)
torch.lu(sq)
torch.linalg.multi_dot([x, sq, sq])
torch.fft.fft(x)
torch.fft.rfft(x)
torch.fft.irfft(c)
torch.fft.fft2(x)
torch.fft.fftshift(x)
torch.fft.fftfreq(4)
torch.stft(v, 2, return_complex=True)
torch.stft(torch.cat([v, w, v, w]), n_fft=8, window=torch.hann_window(8), return_complex=True)
torch.istft(torch.stft(torch.cat([v, w, v, w]), n_fft=8, window=torch.hann_window(8), return_complex=True), n_fft=8, window=torch.hann_window(8))
torch.sum(x)
torch.sum(x, 1)
torch.mean(x, 1, keepdim=True)
torch.max(x)
torch.max(x, 1)
torch.max(x, y)
torch.min(x, 1)
torch.argmax(x, 1)
torch.argsort(x)
torch.sort(x)
torch.topk(x, 2)
torch.topk(x, t.item())  # k is number from tensor
torch.kthvalue(x, 1)
torch.median(x)
torch.mode(x)
torch.quantile(x, 0.5)
torch.quantile(x, torch.tensor([0.1, 0.5]))
torch.nanquantile(x, 0.5)
torch.std(x)
torch.var_mean(x, 1)
torch.norm(x)
torch.cumsum(x, 0)
torch.logsumexp(x, 1)
torch.any(m)
torch.all(m)
torch.count_nonzero(x)
torch.equal(x, y)
torch.allclose(x, y)
torch.equal :: x + 1 if torch.equal(x, y) else x  # result is used in control flow
torch.allclose :: x + 1 if torch.allclose(x, y) else x  # result is used in control flow
torch.isclose(x, y)
torch.isin(ix, ix)
torch.is_tensor(x)
torch.is_floating_point(x)
torch.is_complex(x)
torch.is_nonzero :: x + 1 if torch.is_nonzero(f) else x  # result is used in control flow
torch.numel(x)
torch.searchsorted(v, w)
torch.bucketize(x, v)
torch.clamp(x, 0.2, 0.8)
torch.clamp(x, min=f)
torch.floor_divide(x, y)
torch.pow(x, 2)
torch.cov(x)
torch.cov(x, fweights=ix)  # fweights is tensor
torch.corrcoef(x)
torch.cumulative_trapezoid(x)
torch.trapezoid(x)
torch.renorm(x, 2, 0, 1.0)
torch.vander(v)
torch.polar(x, y)
torch.complex(x, y)
torch.view_as_real(c)
torch.view_as_complex(torch.stack([x, y], -1))
torch.broadcast_tensors(x, v)
torch.broadcast_to(v, (2, 3))
torch.atleast_2d(v)
torch.result_type :: x.to(torch.result_type(x, i))
torch.can_cast :: x + torch.can_cast(x.dtype, torch.float64)
torch.clone(x)
torch.detach(x)
torch.get_default_dtype :: x.to(torch.get_default_dtype())
torch.is_grad_enabled :: x + 1 if torch.is_grad_enabled() else x
torch.is_autocast_enabled :: x + 1 if torch.is_autocast_enabled() else x
torch.vmap(torch.sum)(x)
torch.vmap :: torch.vmap(lambda r: r * 2)(x)
torch.func.grad :: torch.func.grad(lambda a: (a * a).sum())(x)
torch.func.jacrev :: torch.func.jacrev(lambda a: a * a)(v)
torch.autograd.grad :: torch.autograd.grad((x.requires_grad_() * 2).sum(), x)[0]
torch.utils.checkpoint.checkpoint :: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)
torch.manual_seed :: (torch.manual_seed(0), torch.rand(2) + x[:, 0])[1]
torch.seed :: (torch.seed(), x + 1)[1]
torch.get_rng_state :: torch.get_rng_state() + 0
torch.set_grad_enabled :: (torch.set_grad_enabled(False), x + 1)[1]
torch._assert :: (torch._assert(x.sum() > 0, "message"), x + 1)[1]  # condition is tensor
torch._assert :: (torch._assert(x.dim() == 2, "message"), x + 1)[1]
torch._assert_async :: (torch._assert_async(x.sum() > 0), x + 1)[1]
torch._check :: (torch._check(x.shape[0] > 0), x + 1)[1]
torch.compile :: torch.compile(torch.sin)(x)
torch.jit.script :: torch.jit.script(lambda a: a)(x)
torch.autograd.Variable :: torch.autograd.Variable(x) + 1
F.relu(x)
F.relu(x, inplace=True)  # inplace == True
F.relu_(x)
F.gelu(x)
F.silu(x)
F.softmax(x, dim=-1)
F.log_softmax(x, dim=-1)
F.gumbel_softmax(x)
F.gumbel_softmax(x, hard=True)  # hard == True
F.sigmoid(x)
F.tanh(x)
F.glu(b)
F.prelu(x, torch.tensor([0.25]))
F.rrelu(x)
F.rrelu(x, training=True)  # training == True
F.threshold(x, 0.1, 0.0)
F.hardtanh(x)
F.normalize(x)
F.linear(x, weight)
F.bilinear(v[None], w[None], torch.ones(2, 3, 3))
F.embedding(i, table)
F.embedding(i, table, max_norm=1.0)  # max_norm is given
F.embedding_bag(i, table)
F.embedding_bag(ix, table, torch.tensor([0, 2]))  # offsets is tensor
F.one_hot(i, 5)
F.one_hot(i)  # num_classes == -1
F.one_hot(i, int(i.max()) + 1)  # num_classes is number from tensor
F.conv1d(b, torch.ones(2, 3, 1))
F.conv2d(img, filters)
F.conv_transpose2d(img, torch.ones(3, 2, 2, 2))
F.unfold(img, 2)
F.fold(torch.rand(1, 12, 16), (5, 5), 2)
F.max_pool1d(seq, 2)
F.max_pool2d(img, 2)
F.max_pool2d(img, 2, return_indices=True)  # return_indices == True
F.max_unpool2d(*F.max_pool2d(img, 2, return_indices=True), 2)
F.avg_pool2d(img, 2)
F.adaptive_avg_pool2d(img, 1)
F.adaptive_max_pool2d(img, 2)
F.lp_pool2d(img, 2.0, 2)
F.fractional_max_pool2d(img, 2, output_size=3)
F.dropout(x)
F.dropout(x, 0.5, False)  # training == False
F.dropout(x, p=f)  # p is tensor
F.dropout2d(img)
F.alpha_dropout(x, training=True)  # training == True
F.feature_alpha_dropout(img, training=True)  # training == True
F.batch_norm(img, torch.zeros(3), torch.ones(3))
F.batch_norm(img, None, None, training=True)  # training == True
F.instance_norm(img)
F.layer_norm(x, (3,))
F.group_norm(seq, 2)
F.rms_norm(x, (3,))
F.local_response_norm(img, 2)
F.interpolate(img, scale_factor=2)
F.interpolate(img, size=(4, 4), mode="bilinear")
F.interpolate(img, scale_factor=2.0, mode="bilinear", recompute_scale_factor=True)  # recompute_scale_factor == True
F.interpolate(img, size=(t, t))  # size is tensor
F.interpolate(img, size=(int(t), int(t)))  # size is number from tensor
F.interpolate(img, scale_factor=f)  # scale_factor is tensor
F.interpolate(img, scale_factor=f.item())  # scale_factor is number from tensor
F.upsample(img, scale_factor=2)
F.grid_sample(img, grid, align_corners=False)
F.affine_grid(torch.rand(2, 2, 3), (2, 3, 4, 4), align_corners=False)
F.pixel_shuffle(pix, 2)
F.pad(x, (1, 1))
F.pad(img, (1, 1, 1, 1), mode="reflect")
F.pad(x, (0, t.item()))  # pad is number from tensor
F.pad(x, (0, t))  # pad is tensor
F.cosine_similarity(x, y)
F.pairwise_distance(x, y)
F.pdist(x)
F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(b, b, b, is_causal=True)  # is_causal == True
F.multi_head_attention_forward(seq, seq, seq, 8, 2, torch.ones(24, 8), torch.zeros(24), None, None, False, 0.0, torch.ones(8, 8), torch.zeros(8), training=False)
F.cross_entropy(x, ix[:2])
F.nll_loss(x, ix[:2])
F.mse_loss(x, y)
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))
F.binary_cross_entropy_with_logits(x, y)
F.kl_div(x, y)
F.gaussian_nll_loss(x, y, y)
F.poisson_nll_loss(x, y)
F.triplet_margin_loss(x, y, x + y)
F.triplet_margin_with_distance_loss(x, y, x + y)
F.margin_ranking_loss(v, w, v)
F.hinge_embedding_loss(x, y)
F.multi_margin_loss(x, ix[:2])
F.multilabel_margin_loss(x, i)
F.multilabel_soft_margin_loss(x, y)
F.soft_margin_loss(x, y)
F.cosine_embedding_loss(x, y, torch.ones(2))
F.ctc_loss(torch.rand(5, 2, 4).log_softmax(2), i + 1, torch.tensor([5, 5]), torch.tensor([2, 2]))
F.ctc_loss(torch.rand(5, 2, 4).log_softmax(2), i + 1, (5, 5), (2, 2))  # input_lengths is tuple of ints
x.item :: x.sum().item()
x.item :: x + x.sum().item()
x.item :: x + 1 if x.sum().item() > 0 else x  # result is used in control flow
x.item :: [x * k for k in range(t.item())]  # result is used in control flow
x.tolist()  # self is float
ix.tolist()  # self is int
m.tolist()  # self is bool
x.tolist :: x[:, ix.tolist()]
x.tolist :: [x * k for k in counts.tolist()]
x.numpy :: torch.from_numpy(x.numpy() * 2)
x.numpy :: torch.from_numpy(x.detach().cpu().numpy())
x.__array__ :: torch.as_tensor(np.sin(x))
x.__bool__ :: x + 1 if x.sum() > 0 else x  # result is used in control flow
x.__bool__ :: x + bool(f)
x.__int__ :: x + int(t)
x.__int__ :: x + int(f)  # self is float
x.__float__ :: x + float(f)
x.__index__ :: x[:, :t]
x.__index__ :: [0, 1, 2][t] + x  # result is used as an index of a list
x.__len__ :: x + len(x)
x.__contains__ :: x + 1 if 2 in ix else x  # result is used in control flow
x.__hash__ :: {x: 1}[x] + x
x.__repr__ :: (repr(x), x + 1)[1]
x.__str__ :: (str(x), x + 1)[1]
x.__format__ :: (f"{x}", x + 1)[1]
x.__format__ :: (f"{f:.2f}", x + f)[1]
x.__iter__ :: sum(row for row in x)
x.__getitem__ :: x[0]
x.__getitem__ :: x[m]  # index is bool tensor
x.__getitem__ :: x[:, ix]
x.__getitem__ :: x[t - 1]
x.__getitem__ :: x[t.item() - 1]  # index is number from tensor
x.__getitem__ :: x[:t]  # index is slice to tensor
x.__getitem__ :: x[: t.item()]  # index is slice to number from tensor
x.__getitem__ :: x[:, t - 1 :]
x.__getitem__ :: x[ix.bool()[:2]]
x.__setitem__ :: (x.clone().__setitem__(m, 0.0), x)[1]
x.copy_(y)
x.add_(y)
x.mul_(2)
x.clone().zero_()
x.clone().fill_(f)
x.clone().normal_()
x.clone().uniform_()
x.clone().bernoulli_(0.5)
x.clone().random_()
x.clone().exponential_()
x.clone().masked_fill_(m, 0.0)
x.clone().index_fill_(1, ix, 0.0)
x.clone().scatter_(1, i, 0.0)
x.clone().index_put_((ix[:2] - ix[:2],), y[0])
x.clone().clamp_(0.1, 0.9)
x.clone().unsqueeze_(0)
x.clone().transpose_(0, 1)
x.clone().squeeze_()
x.clone().resize_(6)
x.clone().set_(y)
x.clone().requires_grad_()
x.detach()
x.clone().detach_()
x.clone()
x.contiguous()
x.cpu()
x.cuda()
x.to("cpu")
x.to("cuda")  # device == cuda
x.to(torch.float64)
x.to(y)
x.to(x.device)
x.type(torch.float64)
x.type("torch.DoubleTensor")
x.type :: (x.type(), x + 1)[1]
x.type_as(i)
x.float()
x.long()
x.bool()
x.half()
x.double()
x.int()
x.view(3, 2)
x.view(-1)
x.view(t, -1)  # size is tensor
x.view(int(t), -1)  # size is number from tensor
x.view(torch.int32)
x.view_as(y)
x.reshape(3, 2)
x.reshape(t, -1)  # size is tensor
x.expand(2, 2, 3)
x.expand(t, 2, 3)  # size is tensor
x.expand(int(t), 2, 3)  # size is number from tensor
x.expand_as(y)
x.repeat(2, 1)
x.repeat(t, 1)  # size is tensor
x.repeat(int(t), 1)  # size is number from tensor
x.permute(1, 0)
x.transpose(0, 1)
x.split(1)
x.split(counts.tolist(), 1)  # split_size is list of numbers from tensor
x.split(t)  # split_size is tensor
x.split([1, 1])
x.chunk(2)
x.unbind()
x.unfold(1, 2, 1)
x.narrow(1, 0, 2)
x.narrow(1, 0, t)  # length is tensor
x.squeeze(0)
x.unsqueeze(-1)
x.flatten()
x.sum(1)
x.max(1)
x.any()
x.all()
x.nonzero()
ix.unique()
x.masked_select(m)
x.masked_fill(m, float("-inf"))
x.index_select(1, ix)
x.gather(1, i)
x.repeat_interleave(2)
x.repeat_interleave(counts, 0)  # repeats is tensor
x.new_zeros(2, 3)
x.new_zeros(t)  # size is tensor
x.new_tensor([1.0, 2.0])
x.new_full((2,), 1.0)
x.new(2, 3)
x.new_ones((2, 3))
x.new_empty(2)
x.size()
x.size(0)
x.dim()
x.numel()
x.nelement()
x.stride()
x.is_contiguous()
x.is_floating_point()
x.storage_offset()
x.get_device()
x.element_size()
x.data_ptr :: x + (x.data_ptr() % 2)
x.storage :: (x.storage(), x + 1)[1]
x.untyped_storage :: (x.untyped_storage(), x + 1)[1]
x.apply_(abs)
x.map_(y, max)
x.register_hook :: (x.clone().requires_grad_().register_hook(print), x + 1)[1]
x.backward :: (x.clone().requires_grad_().sum().backward(), x + 1)[1]
x.retain_grad :: (x.clone().retain_grad(), x + 1)[1]
x.is_cuda :: x + 1 if x.is_cuda else x
x.requires_grad :: x + 1 if x.requires_grad else x
x.is_leaf :: x + 1 if x.is_leaf else x
x.grad :: x + 1 if x.grad is None else x
x.grad_fn :: x + 1 if x.grad_fn is None else x
x.data :: x.data * 2
x.data :: x.data.clone()
x.data :: (x.data.size(), x + 1)[1]  # result is used for its shape only
x.device :: x.to(x.device)
x.dtype :: x.to(y.dtype)
x.shape :: x.view(x.shape[1], x.shape[0])
x.T :: x.T + 0
x.mT :: x.mT + 0
x.H :: x.H + 0
x.real :: c.real + 0
x.imag :: c.imag + 0
x.names :: (x.names, x + 1)[1]
x.rename(None)
x.to_sparse()
x.is_sparse :: x + 1 if x.is_sparse else x
x.pin_memory()
x.share_memory_()
x.equal(y)
x.allclose(y)
x.is_nonzero :: x + 1 if f.is_nonzero() else x  # result is used in control flow
x.bernoulli()
x.multinomial(1)
x.quantile(0.5)
x.histc(4)
x.cov()
x.corrcoef()
torch.nn.utils.rnn.pack_padded_sequence :: torch.nn.utils.rnn.pack_padded_sequence(seq, lengths, batch_first=True).data
torch.nn.utils.rnn.pack_padded_sequence :: torch.nn.utils.rnn.pack_padded_sequence(seq, [4, 3], batch_first=True).data  # lengths is list of ints
torch.nn.utils.rnn.pack_padded_sequence :: torch.nn.utils.rnn.pack_padded_sequence(seq, lengths, batch_first=True, enforce_sorted=False).data  # enforce_sorted == False
torch.nn.utils.rnn.pad_packed_sequence :: torch.nn.utils.rnn.pad_packed_sequence(torch.nn.utils.rnn.pack_padded_sequence(seq, lengths, batch_first=True), batch_first=True)[0]
torch.nn.utils.rnn.pad_sequence([v, w])
torch.nn.utils.rnn.pack_sequence :: torch.nn.utils.rnn.pack_sequence([v, w]).data
torch.nn.utils.parameters_to_vector([x, y])
torch.nn.utils.clip_grad_norm_ :: (torch.nn.utils.clip_grad_norm_([x], 1.0), x + 1)[1]
torch.nn.init.normal_(x.clone())
torch.nn.init.zeros_(x.clone())
torch.nn.init.xavier_uniform_(x.clone())
torch.distributions.Normal :: torch.distributions.Normal(x, y).log_prob(x)
torch.distributions.Normal :: torch.distributions.Normal(x, y, validate_args=False).log_prob(x)  # validate_args == False
torch.distributions.Normal :: torch.distributions.Normal(x, y).rsample()  # result is used for rsample
torch.distributions.Normal :: torch.distributions.Normal(x, y).sample()  # result is used for sample
torch.distributions.Normal :: torch.distributions.Normal(0.0, 1.0).sample((2,))  # loc is float
torch.distributions.Categorical :: torch.distributions.Categorical(logits=x).log_prob(ix[:2])
torch.distributions.Categorical :: torch.distributions.Categorical(logits=x, validate_args=False).log_prob(ix[:2])  # validate_args == False
torch.distributions.Categorical :: torch.distributions.Categorical(probs=x).sample()  # result is used for sample
torch.distributions.Categorical :: torch.distributions.Categorical(logits=x).entropy()  # result is used for entropy
torch.distributions.Bernoulli :: torch.distributions.Bernoulli(logits=x).log_prob(m.float())
torch.distributions.Bernoulli :: torch.distributions.Bernoulli(x / 4).sample()  # result is used for sample
torch.distributions.Uniform :: torch.distributions.Uniform(x, x + y).sample()
torch.distributions.Uniform :: torch.distributions.Uniform(0.0, 1.0).sample((2,))  # low is float
torch.distributions.Beta :: torch.distributions.Beta(x, y).sample()
torch.distributions.Dirichlet :: torch.distributions.Dirichlet(x).sample()
torch.distributions.Gamma :: torch.distributions.Gamma(x, y).sample()
torch.distributions.Exponential :: torch.distributions.Exponential(x).sample()
torch.distributions.Laplace :: torch.distributions.Laplace(x, y).log_prob(x)
torch.distributions.MultivariateNormal :: torch.distributions.MultivariateNormal(v, spd).log_prob(w)
torch.distributions.MultivariateNormal :: torch.distributions.MultivariateNormal(v, spd, validate_args=False).log_prob(w)  # validate_args == False
torch.distributions.Independent :: torch.distributions.Independent(torch.distributions.Normal(x, y), 1).log_prob(x)
torch.distributions.OneHotCategorical :: torch.distributions.OneHotCategorical(logits=x).sample()
torch.distributions.RelaxedOneHotCategorical :: torch.distributions.RelaxedOneHotCategorical(f, logits=x).rsample()
torch.distributions.Poisson :: torch.distributions.Poisson(x).sample()
torch.distributions.StudentT :: torch.distributions.StudentT(x).sample()
torch.distributions.kl_divergence :: torch.distributions.kl_divergence(torch.distributions.Normal(x, y), torch.distributions.Normal(y, x))
torch.distributions.kl.kl_divergence :: torch.distributions.kl.kl_divergence(torch.distributions.Normal(x, y), torch.distributions.Normal(y, x))
random.random :: x + random.random()
random.randint :: x + random.randint(0, 100000)
random.choice :: x + random.choice(range(100000))
random.uniform :: x + random.uniform(0, 1)
random.shuffle :: (lambda l: (random.shuffle(l), x + l[0])[1])(list(range(1000)))
random.seed :: (random.seed(0), x + random.random())[1]
numpy.random.rand :: x + np.random.rand()
numpy.random.randn :: x + torch.from_numpy(np.random.randn(2, 3))
numpy.random.uniform :: x + np.random.uniform()
numpy.random.randint :: x + np.random.randint(0, 100000)
numpy.random.choice :: x + np.random.choice(range(100000))
numpy.random.permutation :: x[:, np.random.permutation(1000) % 3]
numpy.random.seed :: (np.random.seed(0), x + 1)[1]
time.time :: x + time.time() % 1
time.perf_counter :: x + time.perf_counter() % 1
time.monotonic :: x + time.monotonic() % 1
time.sleep :: (time.sleep(0), x + 1)[1]
datetime.datetime.now :: x + datetime.datetime.now().microsecond
builtins.id :: x + (id(x) % 100003)
builtins.hash :: x + hash("a") % 7
builtins.hash :: x + hash(x) % 100003  # obj is tensor
builtins.print :: (print("a"), x + 1)[1]
builtins.print :: (print(x), x + 1)[1]  # values is tensor
builtins.open :: (open(os.devnull).close(), x + 1)[1]
builtins.eval :: eval("1 + 1") + x
builtins.sorted :: sorted([x.sum(), y.sum()])[0]  # iterable is list of tensors
builtins.max :: max(x.sum(), y.sum())  # args is tensors
builtins.max :: max(x.shape[0], 3) + x
builtins.sum :: sum([x, y])
builtins.abs :: abs(x)
builtins.round :: round(x)
builtins.pow :: pow(x, 2)
builtins.divmod :: divmod(x, y)
builtins.isinstance :: x + 1 if isinstance(x, torch.Tensor) else x
builtins.hasattr :: x + 1 if hasattr(x, "foo") else x
builtins.any :: x + 1 if any([x.sum() > 0]) else x  # iterable is list of tensors
builtins.all :: x + 1 if all([x.sum() > 0]) else x  # iterable is list of tensors
builtins.range :: [x * k for k in range(int(t))]  # stop is number from tensor
builtins.list :: sum(list(x))
builtins.float :: x + float(f)
builtins.complex :: x + complex(f)
copy.copy :: copy.copy(x) + 1
copy.deepcopy :: copy.deepcopy(x) + 1
copy.deepcopy :: copy.deepcopy([1, 2])[0] + x  # x is list of ints
logging.info :: (logging.info("a"), x + 1)[1]
logging.warning :: (logging.warning("a"), x + 1)[1]
logging.getLogger :: (logging.getLogger("a").info("b"), x + 1)[1]
warnings.warn :: (warnings.warn("a", stacklevel=1), x + 1)[1]
warnings.simplefilter :: (warnings.simplefilter("ignore"), x + 1)[1]
warnings.filterwarnings :: (warnings.filterwarnings("ignore"), x + 1)[1]
os.environ.get :: x + 1 if os.environ.get("A") else x
os.getenv :: x + 1 if os.getenv("A") else x
os.path.exists :: x + 1 if os.path.exists("a") else x
os.getpid :: x + os.getpid() % 2
sys.getrefcount :: x + sys.getrefcount(x) % 2
gc.collect :: (gc.collect(), x + 1)[1]
threading.Lock :: (threading.Lock(), x + 1)[1]
uuid.uuid4 :: x + uuid.uuid4().int % 100003
weakref.ref :: (weakref.ref(x), x + 1)[1]
inspect.currentframe :: (inspect.currentframe(), x + 1)[1]
math.sqrt :: x + math.sqrt(x.shape[0])
math.sqrt :: x + math.sqrt(f)  # x is tensor
math.floor :: x + math.floor(x.shape[0] / 2)
math.isnan :: x + 1 if math.isnan(f) else x  # x is tensor
math.prod :: x + math.prod(x.shape)
math.log :: x + math.log(t.item())  # x is number from tensor
numpy.sin :: torch.as_tensor(np.sin(x))
numpy.array :: torch.as_tensor(np.array([1.0, 2.0]))
numpy.array :: torch.as_tensor(np.array(x))  # object is tensor
numpy.sqrt :: x + np.sqrt(4.0)
numpy.prod :: x + np.prod(x.shape)
numpy.arange :: torch.from_numpy(np.arange(3)) + x
torch.cuda.is_available :: x + 1 if torch.cuda.is_available() else x
torch.cuda.synchronize :: (torch.cuda.synchronize(), x + 1)[1]
torch.jit.is_scripting :: x + 1 if torch.jit.is_scripting() else x
torch.jit.isinstance :: x + 1 if torch.jit.isinstance(x, torch.Tensor) else x
torch.compiler.is_compiling :: x + 1 if torch.compiler.is_compiling() else x + 1
torch.onnx.is_in_onnx_export :: x + 1 if torch.onnx.is_in_onnx_export() else x
torch.load :: torch.load(os.devnull)
torch.save :: (torch.save(x, os.devnull), x + 1)[1]
"""


def lines() -> list[tuple[str | None, str, tuple[str, ...]]]:
    """(key or None, expression, conditions) of each call."""
    found = []
    for line in CALLS.strip().splitlines():
        text, _, comment = line.partition("  # ")
        key, mark, expression = text.partition(" :: ")
        conditions = tuple(part.strip() for part in comment.split(" and ") if part.strip())
        found.append((key if mark else None, expression if mark else text, conditions))
    return found
