// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "branch.h"
#include "client.h"
#include "check.h"
#include "uvm_ioctl.h"
#include "uvm_linux_ioctl.h"

#define UVM_DEVICE	"/dev/nvidia-uvm"
#define MODEL_DEVICE	"/dev/gpu-model"
#define COUNTERS	"/proc/driver/nvidia-uvm/fault_isolation"

static void print_end(FILE *to, const char *path, unsigned int lines)
{
	static char text[1 << 20];
	int descriptor = open(path, O_RDONLY | O_NONBLOCK);
	char *line = text;
	ssize_t got;

	while ((got = read(descriptor, line, (size_t)(text + sizeof(text) - 1 - line))) > 0)
		line += got;
	if (descriptor >= 0)
		close(descriptor);
	*line = '\0';
	for (lines++; line > text && lines > 0; line--)
		lines -= line[-1] == '\n';
	fputs(line > text ? line + 2 : line, to);
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "proof[%d]: ", getpid());
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	print_end(stderr, MODEL_DEVICE, 40);
	_exit(2);
}

void print_events(void)
{
	print_end(stdout, COUNTERS, 30);
	print_end(stdout, COUNTERS "_events", 30);
	print_end(stdout, MODEL_DEVICE, 80);
}

NvProcessorUuid gpu_uuid(uint32_t gpu)
{
	NvProcessorUuid uuid;

	memcpy(uuid.uuid, "GPU-MODEL-NO-000", sizeof(uuid.uuid));
	uuid.uuid[15] = (unsigned char)('0' + gpu);
	return uuid;
}

static int open_device(const char *path)
{
	int descriptor = open(path, O_RDWR | O_CLOEXEC);

	if (descriptor < 0)
		die("cannot open %s: %s", path, strerror(errno));
	return descriptor;
}

void check(const char *what, int result, uint32_t status)
{
	if (result != 0)
		die("%s: %s", what, strerror(errno));
	if (status != 0)
		die("%s: status 0x%x", what, status);
}

static void model_ioctl(int descriptor, unsigned long request, void *argument, const char *what)
{
	if (ioctl(descriptor, request, argument) != 0)
		die("%s: %s", what, strerror(errno));
}

static void channel_register(struct client *client, uint32_t gpu, uint32_t channel, uint32_t engine)
{
	struct gpu_model_channel request = {
		.gpu = gpu,
		.client = client->number,
		.channel = channel + 100 * gpu,
		.engine = engine,
		.group = client->group,
		.subcontext = client->number,
	};
	UVM_REGISTER_CHANNEL_PARAMS params = {
		.gpuUuid = gpu_uuid(gpu),
		.rmCtrlFd = client->model,
		.hClient = client->number,
		.hChannel = request.channel,
	};

	model_ioctl(client->model, GPU_MODEL_IOC_CHANNEL, &request, "channel");
	check("UVM_REGISTER_CHANNEL", ioctl(client->uvm, UVM_REGISTER_CHANNEL, &params), params.rmStatus);
}

void client_add_gpu(struct client *client, uint32_t gpu)
{
	UVM_REGISTER_GPU_PARAMS gpu_params = { .gpu_uuid = gpu_uuid(gpu), .rmCtrlFd = -1 };
	UVM_REGISTER_GPU_VASPACE_PARAMS space_params = {
		.gpuUuid = gpu_uuid(gpu),
		.rmCtrlFd = client->model,
		.hClient = client->number,
		.hVaSpace = 1,
	};

	check("UVM_REGISTER_GPU", ioctl(client->uvm, UVM_REGISTER_GPU, &gpu_params), gpu_params.rmStatus);
	check("UVM_REGISTER_GPU_VASPACE", ioctl(client->uvm, UVM_REGISTER_GPU_VASPACE, &space_params),
	      space_params.rmStatus);
	channel_register(client, gpu, PROOF_CHANNEL_SM, GPU_MODEL_ENGINE_SM);
	channel_register(client, gpu, PROOF_CHANNEL_COPY, GPU_MODEL_ENGINE_COPY);
	channel_register(client, gpu, PROOF_CHANNEL_HOST, GPU_MODEL_ENGINE_HOST);
}

void client_add_channel(struct client *client, uint32_t channel, uint32_t group)
{
	struct client in_group = *client;

	in_group.group = group;
	channel_register(&in_group, client->gpu, channel, GPU_MODEL_ENGINE_SM);
}

static struct client open_with(uint32_t number, uint32_t gpu, uint32_t group, uint64_t flags)
{
	UVM_INITIALIZE_PARAMS params = { .flags = flags };
	struct client client = { .number = number, .gpu = gpu, .group = group };

	client.model = open_device(MODEL_DEVICE);
	client.uvm = open_device(UVM_DEVICE);
	client.mm = open_device(UVM_DEVICE);
	check("UVM_INITIALIZE", ioctl(client.uvm, UVM_INITIALIZE, &params), params.rmStatus);
	return client;
}

/* As CUDA does: RM's descriptor first, then UVM's, then UVM's second one for the mm. */
static struct client open_in(uint32_t number, uint32_t gpu, uint32_t group)
{
	struct client client = open_with(number, gpu, group, 0);
	UVM_MM_INITIALIZE_PARAMS params = { .uvmFd = client.uvm };

	check("UVM_MM_INITIALIZE", ioctl(client.mm, UVM_MM_INITIALIZE, &params), params.rmStatus);
	client_add_gpu(&client, gpu);
	return client;
}

struct client client_open(uint32_t number, uint32_t gpu)
{
	return open_in(number, gpu, PROOF_GROUP);
}

struct client client_open_alone(uint32_t number, uint32_t gpu)
{
	return open_in(number, gpu, PROOF_GROUP_ALONE);
}

struct client client_open_without_mm(uint32_t number, uint32_t gpu)
{
	struct client client = open_with(number, gpu, PROOF_GROUP, UVM_INIT_FLAGS_MULTI_PROCESS_SHARING_MODE);

	client_add_gpu(&client, gpu);
	return client;
}

static void channel_unregister(struct client *client, uint32_t channel)
{
	UVM_UNREGISTER_CHANNEL_PARAMS params = {
		UNREGISTER_FROM(gpu_uuid(client->gpu))
		.hClient = client->number,
		.hChannel = channel + 100 * client->gpu,
	};

	check("UVM_UNREGISTER_CHANNEL", ioctl(client->uvm, UVM_UNREGISTER_CHANNEL, &params), params.rmStatus);
}

void client_leave(struct client *client)
{
	channel_unregister(client, PROOF_CHANNEL_SM);
	channel_unregister(client, PROOF_CHANNEL_COPY);
	channel_unregister(client, PROOF_CHANNEL_HOST);
	client_close(client);
}

void client_close(struct client *client)
{
	close(client->mm);
	close(client->uvm);
	close(client->model);
}

void *managed_map(struct client *client, uint64_t address, size_t size)
{
	void *mapped = mmap((void *)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, client->uvm,
			    (off_t)address);

	if (mapped == MAP_FAILED)
		die("mmap of managed memory: %s", strerror(errno));
	return mapped;
}

uint32_t try_external_range(struct client *client, uint64_t address, size_t size)
{
	UVM_CREATE_EXTERNAL_RANGE_PARAMS params = { .base = address, .length = size };

	if (ioctl(client->uvm, UVM_CREATE_EXTERNAL_RANGE, &params) != 0)
		die("UVM_CREATE_EXTERNAL_RANGE: %s", strerror(errno));
	return params.rmStatus;
}

void external_range(struct client *client, uint64_t address, size_t size)
{
	check("UVM_CREATE_EXTERNAL_RANGE", 0, try_external_range(client, address, size));
}

void free_range(struct client *client, uint64_t address, size_t size)
{
	UVM_FREE_PARAMS params = { .base = address, FREE_LENGTH(size) };

	check("UVM_FREE", ioctl(client->uvm, UVM_FREE, &params), params.rmStatus);
}

void semaphore_pool(struct client *client, uint64_t address)
{
	UVM_ALLOC_SEMAPHORE_POOL_PARAMS *params = calloc(1, sizeof(*params));

	params->base = address;
	params->length = 4096;
	params->gpuAttributesCount = 1;
	params->perGpuAttributes[0].gpuUuid = gpu_uuid(client->gpu);
	check("UVM_ALLOC_SEMAPHORE_POOL", ioctl(client->uvm, UVM_ALLOC_SEMAPHORE_POOL, params), params->rmStatus);
	free(params);
}

bool try_memory(struct client *client, uint32_t memory, size_t size)
{
	struct gpu_model_memory request = {
		.gpu = client->gpu,
		.client = client->number,
		.memory = memory,
		.vidmem = 1,
		.size = size,
	};

	return ioctl(client->model, GPU_MODEL_IOC_MEMORY, &request) == 0;
}

void external_map(struct client *client, uint64_t address, size_t size, uint32_t memory, uint32_t mapping)
{
	UVM_MAP_EXTERNAL_ALLOCATION_PARAMS *params = calloc(1, sizeof(*params));

	if (!try_memory(client, memory, size))
		die("memory: %s", strerror(errno));
	params->base = address;
	params->length = size;
	params->gpuAttributesCount = 1;
	params->perGpuAttributes[0].gpuUuid = gpu_uuid(client->gpu);
	params->perGpuAttributes[0].gpuMappingType = mapping;
	params->rmCtrlFd = client->model;
	params->hClient = client->number;
	params->hMemory = memory;
	check("UVM_MAP_EXTERNAL_ALLOCATION", ioctl(client->uvm, UVM_MAP_EXTERNAL_ALLOCATION, params), params->rmStatus);
	free(params);
}

bool try_launch(struct client *client, uint32_t channel, uint32_t lanes, const struct gpu_model_access *accesses,
		uint32_t count, uint32_t repeat, uint32_t *program)
{
	struct gpu_model_launch request = {
		.client = client->number,
		.channel = channel + 100 * client->gpu,
		.lanes = lanes,
		.count = count,
		.repeat = repeat,
		.accesses = (uintptr_t)accesses,
	};

	if (ioctl(client->model, GPU_MODEL_IOC_LAUNCH, &request) != 0)
		return false;
	*program = request.program;
	return true;
}

uint32_t launch(struct client *client, uint32_t channel, uint32_t lanes, const struct gpu_model_access *accesses,
		uint32_t count, uint32_t repeat)
{
	uint32_t program;

	if (!try_launch(client, channel, lanes, accesses, count, repeat, &program))
		die("launch: %s", strerror(errno));
	return program;
}

uint32_t several(struct client *client, uint32_t channel, uint32_t op, uint64_t first, uint64_t stride, uint32_t count)
{
	struct gpu_model_access *accesses = calloc(count, sizeof(*accesses));
	uint32_t program, i;

	for (i = 0; i < count; i++)
		accesses[i] = (struct gpu_model_access){ first + i * stride, 1, op, 8 };
	if (!try_launch(client, channel, 1, accesses, count, 1, &program))
		program = 0;
	free(accesses);
	return program;
}

struct gpu_model_wait wait_for(struct client *client, uint32_t program, uint32_t timeout_ms, uint64_t *values,
			       uint32_t count)
{
	struct gpu_model_wait request = {
		.program = program,
		.timeout_ms = timeout_ms,
		.values = (uintptr_t)values,
		.count = count,
	};

	model_ioctl(client->model, GPU_MODEL_IOC_WAIT, &request, "wait");
	return request;
}

uint32_t wait_for_times(struct client *client, uint32_t program, uint32_t timeout_ms, uint32_t *state, uint64_t *times)
{
	struct gpu_model_wait request = {
		.program = program,
		.timeout_ms = timeout_ms,
		.times = (uintptr_t)times,
		.time_count = GPU_MODEL_TIMES_MAX,
	};

	model_ioctl(client->model, GPU_MODEL_IOC_WAIT, &request, "wait");
	*state = request.state;
	return request.time_count;
}

struct gpu_model_wait run_one(struct client *client, uint32_t channel, uint32_t op, uint64_t address, uint64_t *value)
{
	struct gpu_model_access access = { .address = address, .value = *value, .op = op, .length = 8 };

	return wait_for(client, launch(client, channel, 1, &access, 1, 1), 20000, value, 1);
}

static void with_model(unsigned long request, void *argument, const char *what)
{
	int descriptor = open_device(MODEL_DEVICE);

	model_ioctl(descriptor, request, argument, what);
	close(descriptor);
}

struct gpu_model_status model_status(uint32_t gpu)
{
	struct gpu_model_status status = { .gpu = gpu };

	with_model(GPU_MODEL_IOC_STATUS, &status, "status");
	return status;
}

void model_set(const char *name, int64_t value)
{
	struct gpu_model_setting setting = { .value = value };

	strncpy(setting.name, name, sizeof(setting.name) - 1);
	with_model(GPU_MODEL_IOC_SET, &setting, name);
}

uint32_t model_inject(const char *call, uint32_t skip, uint32_t count, uint32_t status)
{
	struct gpu_model_inject rule = { .skip = skip, .count = count, .status = status };

	strncpy(rule.call, call, sizeof(rule.call) - 1);
	with_model(GPU_MODEL_IOC_INJECT, &rule, call);
	return rule.hits;
}

int model_power(bool suspend)
{
	int descriptor = open_device(MODEL_DEVICE);
	int result = ioctl(descriptor, suspend ? GPU_MODEL_IOC_SUSPEND : GPU_MODEL_IOC_RESUME);

	close(descriptor);
	return result;
}

void model_duplicate(const struct client *client, uint32_t count)
{
	struct gpu_model_duplicate request = {
		.gpu = client->gpu, .group = PROOF_GROUP, .subcontext = client->number, .count = count
	};

	with_model(GPU_MODEL_IOC_DUPLICATE, &request, "duplicate");
}

uint32_t module_set(const char *name, uint32_t value)
{
	char path[128];
	uint32_t before = 0;
	FILE *setting;

	snprintf(path, sizeof(path), "/sys/module/nvidia_uvm/parameters/uvm_fault_isolation_%s", name);
	setting = fopen(path, "r+");
	if (!setting)
		return 0;
	if (fscanf(setting, "%u", &before) != 1)
		die("%s", path);
	rewind(setting);
	fprintf(setting, "%u\n", value);
	if (fclose(setting) != 0)
		die("%s", path);
	return before;
}

uint64_t module_counted(const char *what)
{
	FILE *counters = fopen(COUNTERS, "r");
	uint64_t found = 0;
	char line[128];

	if (!counters)
		return 0;
	while (fgets(line, sizeof(line), counters))
		if (strncmp(line, what, strlen(what)) == 0)
			sscanf(line + strlen(what), " %lu", &found);
	fclose(counters);
	return found;
}
